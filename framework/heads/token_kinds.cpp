#include "framework/heads/token_kinds.h"

#include <array>
#include <optional>

#include "framework/data/task.h"
#include "framework/data/text_vocabulary.h"

namespace headlab {

namespace {

constexpr std::array<const char*, 6> kind_names{"small", "capital", "digit", "blank", "line end", "sign"};

std::size_t kind_of(const std::string& piece) {
  const auto first = static_cast<unsigned char>(piece.empty() ? ' ' : piece[0]);
  if (first >= 'A' && first <= 'Z') return 1;
  if (first >= '0' && first <= '9') return 2;
  if (first == ' ' || first == '\t') return 3;
  if (first == '\n' || first == '\r') return 4;
  return (first >= 'a' && first <= 'z') || first >= 0x80 ? 0 : 5;
}

}  // namespace

TokenKinds token_kinds(const Task& task) {
  TokenKinds kinds;
  const TextVocabulary* vocabulary = task.vocabulary();
  if (vocabulary == nullptr) return kinds;
  std::array<std::optional<std::size_t>, kind_names.size()> seen;
  for (std::int64_t id = 0; id < vocabulary->size(); ++id) {
    const std::size_t kind = kind_of(vocabulary->piece(id));
    if (!seen[kind]) {
      seen[kind] = kinds.names.size();
      kinds.names.emplace_back(kind_names[kind]);
    }
    kinds.of_class.push_back(*seen[kind]);
  }
  return kinds;
}

}  // namespace headlab
