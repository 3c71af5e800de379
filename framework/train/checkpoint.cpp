#include "framework/train/checkpoint.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include <nlohmann/json.hpp>

#include "framework/core/check.h"
#include "framework/train/verify.h"

namespace headlab {

namespace {

constexpr std::string_view format = "headlab checkpoint";
constexpr std::int64_t format_version = 1;
const std::string optimiser_prefix = "optimiser/";

void check_finite(const std::string& name, const Array& array, const std::string& where) {
  if (array.dtype() != DType::f32 && array.dtype() != DType::f64) return;
  dispatch(array.dtype(), where, [&](auto zero) {
    using T = decltype(zero);
    for (const T x : array.values<T>()) {
      check(std::isfinite(x), where, "not saved: '{}' holds {}", name, x);
    }
  });
}

template <class T>
T number(const std::string& text, const std::string& where, std::string_view field) {
  T value{};
  const char* end = text.data() + text.size();
  const auto result = std::from_chars(text.data(), end, value);
  check(result.ec == std::errc() && result.ptr == end, where, "the checkpoint's {} is '{}', not a number",
        field, text);
  return value;
}

nlohmann::json parsed(const std::string& text, const std::string& where, std::string_view field) {
  nlohmann::json json = nlohmann::json::parse(text, nullptr, false);
  check(!json.is_discarded(), where, "the checkpoint's {} is not JSON", field);
  return json;
}

std::optional<TextVocabulary> vocabulary_of(const Metadata& metadata, const std::string& where) {
  const auto strings = metadata.find("vocabulary");
  if (strings == metadata.end()) return std::nullopt;
  const nlohmann::json list = parsed(strings->second, where, "vocabulary");
  check(list.is_array() && std::all_of(list.begin(), list.end(), [](const auto& s) { return s.is_string(); }),
        where, "the checkpoint's vocabulary is not a list of texts");
  const auto unit = metadata.find("vocabulary_unit");
  check(unit != metadata.end() && (unit->second == "byte" || unit->second == "code_point"), where,
        "the checkpoint's vocabulary_unit is neither byte nor code_point");
  return TextVocabulary::from_strings(list.get<std::vector<std::string>>(),
                                      unit->second == "byte" ? TextUnit::byte : TextUnit::code_point);
}

}  // namespace

void save_checkpoint(const std::filesystem::path& path, const Checkpoint& checkpoint) {
  NamedArrays arrays = checkpoint.parameters;
  for (const auto& entry : checkpoint.optimiser) arrays[optimiser_prefix + entry.first] = entry.second;
  for (const auto& entry : arrays) check_finite(entry.first, entry.second, path.string());

  Metadata metadata{{"format", std::string(format)},
                    {"format_version", std::to_string(format_version)},
                    {"numbers_version", std::to_string(numbers_version)},
                    {"config", to_json(checkpoint.config).dump()},
                    {"step", std::to_string(checkpoint.step)}};
  if (checkpoint.best_loss) {
    metadata["best_loss"] = fmt::format("{}", *checkpoint.best_loss);
    metadata["best_step"] = std::to_string(checkpoint.best_step);
  }
  if (checkpoint.vocabulary) {
    metadata["vocabulary"] = nlohmann::json(checkpoint.vocabulary->strings()).dump();
    metadata["vocabulary_unit"] = checkpoint.vocabulary->unit() == TextUnit::byte ? "byte" : "code_point";
  }
  if (checkpoint.config.needs.positions == Needs::Positions::rotary) metadata["rotary_pairing"] = "halves";
  write_safetensors(path, arrays, metadata);
}

Checkpoint load_checkpoint(const std::filesystem::path& path) {
  const std::string where = path.string();
  Safetensors content = read_safetensors(path);
  const auto found = content.metadata.find("format");
  check(found != content.metadata.end() && found->second == format, where, "is not a checkpoint of headlab");
  const auto field = [&](const std::string& name) -> const std::string& {
    const auto entry = content.metadata.find(name);
    check(entry != content.metadata.end(), where, "the checkpoint has no {}", name);
    return entry->second;
  };
  const auto version = number<std::int64_t>(field("format_version"), where, "format_version");
  check(version == format_version, where, "has format version {}, this program reads {}", version,
        format_version);

  Checkpoint checkpoint;
  checkpoint.config = run_config_from_json(parsed(field("config"), where, "config"), where);
  checkpoint.step = number<std::int64_t>(field("step"), where, "step");
  check(checkpoint.step >= 0, where, "the checkpoint's step {} is negative", checkpoint.step);
  if (content.metadata.count("best_loss") != 0) {
    checkpoint.best_loss = number<double>(field("best_loss"), where, "best_loss");
    checkpoint.best_step = number<std::int64_t>(field("best_step"), where, "best_step");
  }
  checkpoint.vocabulary = vocabulary_of(content.metadata, where);
  for (auto& entry : content.arrays) {
    if (entry.first.compare(0, optimiser_prefix.size(), optimiser_prefix) == 0) {
      checkpoint.optimiser[entry.first.substr(optimiser_prefix.size())] = std::move(entry.second);
    } else {
      checkpoint.parameters[entry.first] = std::move(entry.second);
    }
  }
  return checkpoint;
}

std::vector<std::int64_t> snapshot_steps(std::int64_t steps) {
  constexpr int most = 20;
  std::vector<std::int64_t> list{0};
  for (int i = 0; i < most - 1; ++i) {
    const double share = static_cast<double>(i) / (most - 2);
    const std::int64_t step =
        i == most - 2 ? steps : std::llround(std::pow(static_cast<double>(steps), share));
    if (step > list.back()) list.push_back(step);
  }
  return list;
}

}  // namespace headlab
