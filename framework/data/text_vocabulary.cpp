#include "framework/data/text_vocabulary.h"

#include <algorithm>
#include <utility>

#include "framework/core/check.h"
#include "framework/data/utf8.h"

namespace headlab {

namespace {

constexpr std::string_view byte_order_mark = "\xEF\xBB\xBF";
constexpr std::string_view replacement = "\xEF\xBF\xBD";  // U+FFFD

int byte_value(char c) { return static_cast<unsigned char>(c); }

/// Calls f(unit, offset in `text`) for each unit in turn.
template <class F>
void for_each_unit(std::string_view text, TextUnit unit, std::string_view where, const F& f) {
  if (unit == TextUnit::byte) {
    for (std::size_t i = 0; i < text.size(); ++i) f(text.substr(i, 1), i);
    return;
  }
  std::size_t i = text.substr(0, byte_order_mark.size()) == byte_order_mark ? byte_order_mark.size() : 0;
  while (i < text.size()) {
    const Utf8 read = read_utf8(text.substr(i));
    check(read.kind != Utf8::Kind::cut, where, "not UTF-8: the character at offset {} is cut off", i);
    check(read.kind == Utf8::Kind::character, where,
          "not UTF-8: byte 0x{:02x} at offset {} starts no character", byte_value(text[i]), i);
    const bool cr_lf = text[i] == '\r' && i + 1 < text.size() && text[i + 1] == '\n';
    if (!cr_lf) f(text.substr(i, read.bytes), i);
    i += read.bytes;
  }
}

std::string hexadecimal(char c) { return fmt::format("{:02x}", byte_value(c)); }

}  // namespace

TextVocabulary::TextVocabulary(std::vector<std::string> pieces, TextUnit unit)
    : unit_(unit), pieces_(std::move(pieces)) {
  for (std::size_t i = 0; i < pieces_.size(); ++i) ids_[pieces_[i]] = static_cast<std::int64_t>(i);
}

TextVocabulary TextVocabulary::of(std::string_view text, TextUnit unit, std::string_view where) {
  std::unordered_map<std::string, bool> seen;
  for_each_unit(text, unit, where,
                [&](std::string_view piece, std::size_t) { seen[std::string(piece)] = true; });
  std::vector<std::string> pieces;
  for (const auto& entry : seen) pieces.push_back(entry.first);
  // std::string compares bytes as unsigned, and UTF-8 keeps the order of code points.
  std::sort(pieces.begin(), pieces.end());
  return {std::move(pieces), unit};
}

TextVocabulary TextVocabulary::from_strings(const std::vector<std::string>& strings, TextUnit unit) {
  std::vector<std::string> pieces;
  for (std::size_t i = 0; i < strings.size(); ++i) {
    const std::string& text = strings[i];
    if (unit == TextUnit::byte) {
      const bool digits = text.find_first_not_of("0123456789abcdef") == std::string::npos;
      check(text.size() == 2 && digits, "vocabulary", "entry {} is '{}', not two hexadecimal digits", i,
            text);
      pieces.emplace_back(1, static_cast<char>(std::stoi(text, nullptr, 16)));
    } else {
      const Utf8 read = text.empty() ? Utf8{Utf8::Kind::cut, 0, 0} : read_utf8(text);
      check(read.kind == Utf8::Kind::character && read.bytes == text.size(), "vocabulary",
            "entry {} is not one character", i);
      pieces.push_back(text);
    }
    check(i == 0 || pieces[i - 1] < pieces[i], "vocabulary", "entry {} is not above the one before", i);
  }
  return {std::move(pieces), unit};
}

std::vector<std::string> TextVocabulary::strings() const {
  if (unit_ == TextUnit::code_point) return pieces_;
  std::vector<std::string> strings;
  for (const std::string& piece : pieces_) strings.push_back(hexadecimal(piece[0]));
  return strings;
}

std::vector<std::int64_t> TextVocabulary::encode(std::string_view text, std::string_view where) const {
  std::vector<std::int64_t> ids;
  ids.reserve(text.size());
  for_each_unit(text, unit_, where, [&](std::string_view piece, std::size_t offset) {
    const std::int64_t id = find(piece);
    if (id < 0) {
      const bool bytes = unit_ == TextUnit::byte;
      const std::string shown =
          bytes ? "byte 0x" + hexadecimal(piece[0]) : fmt::format("character '{}'", piece);
      fail(where, "{} at offset {} is not among the {} of the vocabulary", shown, offset, size());
    }
    ids.push_back(id);
  });
  return ids;
}

std::string TextVocabulary::decode(std::span<const std::int64_t> ids) const {
  TextDecoder decoder(*this);
  std::string text;
  for (const std::int64_t id : ids) text += decoder.push(id);
  return text + decoder.finish();
}

const std::string& TextVocabulary::piece(std::int64_t id) const {
  check(id >= 0 && id < size(), "vocabulary", "token {} is not in 0 to {}", id, size() - 1);
  return pieces_[static_cast<std::size_t>(id)];
}

std::string TextVocabulary::visible(std::int64_t id) const {
  const std::string& text = piece(id);
  const int first = byte_value(text[0]);
  if (text == "\n") return "\\n";
  if (text == "\r") return "\\r";
  if (text == "\t") return "\\t";
  if (first < 0x20 || first == 0x7F || (text.size() == 1 && first >= 0x80))
    return "\\x" + hexadecimal(text[0]);
  return text;
}

std::int64_t TextVocabulary::find(std::string_view piece) const {
  const auto found = ids_.find(std::string(piece));
  return found == ids_.end() ? -1 : found->second;
}

std::string TextDecoder::push(std::int64_t id) {
  pending_ += vocabulary_->piece(id);
  std::string out;
  while (!pending_.empty()) {
    const Utf8 read = read_utf8(pending_);
    if (read.kind == Utf8::Kind::cut) break;
    const bool character = read.kind == Utf8::Kind::character;
    out += character ? std::string_view(pending_).substr(0, read.bytes) : replacement;
    pending_.erase(0, std::max<std::size_t>(read.bytes, 1));
  }
  return out;
}

std::string TextDecoder::finish() {
  const bool left = !std::exchange(pending_, "").empty();
  return left ? std::string(replacement) : "";
}

}  // namespace headlab
