#include "framework/command/bench_shapes.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "framework/core/check.h"
#include "framework/core/suggest.h"
#include "framework/files/atomic_file.h"
#include "framework/report/terminal.h"

namespace headlab {

namespace {

using Json = nlohmann::json;

constexpr std::int64_t largest = 1'000'000'000;

/// One case of the file, read key by key.
class Case {
 public:
  Case(const Json& json, std::string where) : json_(json), where_(std::move(where)) {
    check(json_.is_object(), where_, "is no object but {}", json_.type_name());
    const Json& name = value("name");
    check(name.is_string() && !name.get_ref<const std::string&>().empty(), where_,
          "'name' is {} (allowed: a text that is not empty)", shown(name));
    name_ = name.get<std::string>();
    where_ += fmt::format(" '{}'", printable(name_));
    check(name_.find(',') == std::string::npos, where_, "the name holds a comma, which --only splits at");
  }
  const std::string& name() const { return name_; }
  const std::string& where() const { return where_; }

  std::int64_t whole(const std::string& key) {
    const Json& number = value(key);
    check(number.is_number_integer() && number.get<double>() >= 1 && number.get<double>() <= largest, where_,
          "'{}' is {} (allowed: whole numbers 1 … {})", key, shown(number), largest);
    return number.get<std::int64_t>();
  }
  bool flag(const std::string& key) {
    const Json& flag = value(key);
    check(flag.is_boolean(), where_, "'{}' is {} (allowed: true, false)", key, shown(flag));
    return flag.get<bool>();
  }
  /// After all that there should be has been read.
  void finish() const {
    for (const auto& item : json_.items()) {
      check(std::find(read_.begin(), read_.end(), item.key()) != read_.end(), where_,
            "unknown key '{}'{} (allowed: {})", printable(item.key()), did_you_mean(item.key(), read_),
            fmt::join(read_, ", "));
    }
  }

 private:
  static std::string shown(const Json& json) {
    return printable(json.dump(-1, ' ', false, Json::error_handler_t::replace));
  }
  const Json& value(const std::string& key) {
    read_.push_back(key);
    const auto found = json_.find(key);
    check(found != json_.end(), where_, "'{}' is missing", key);
    return *found;
  }

  const Json& json_;
  std::string where_, name_;
  std::vector<std::string> read_;
};

void check_heads(const Case& c, std::int64_t heads, std::int64_t d_model) {
  check(d_model % heads == 0, c.where(), "'h' {} does not divide 'd' {}", heads, d_model);
}

AttentionShape attention_shape(Case& c) {
  AttentionShape shape{c.name(), c.whole("B"), c.whole("T"), c.whole("d"), c.whole("h"), c.flag("causal")};
  check_heads(c, shape.heads, shape.d_model);
  return shape;
}

TrainingShape training_shape(Case& c) {
  TrainingShape shape{c.name(),     c.whole("L"), c.whole("h"), c.whole("d"),
                      c.whole("T"), c.whole("B"), c.whole("V")};
  check_heads(c, shape.heads, shape.d_model);
  return shape;
}

template <class Shape>
std::vector<Shape> shapes_of(const Json& file, const std::string& kind, const std::string& where,
                             Shape (*read)(Case&)) {
  std::vector<Shape> shapes;
  if (!file.contains(kind)) return shapes;
  const Json& list = file.at(kind);
  check(list.is_array(), where, "'{}' is no list but {}", kind, list.type_name());
  std::set<std::string> names;
  for (std::size_t i = 0; i < list.size(); ++i) {
    Case c(list[i], fmt::format("{}: {} case {}", where, kind, i + 1));
    shapes.push_back(read(c));
    c.finish();
    check(names.insert(c.name()).second, c.where(), "an earlier case has that name");
  }
  return shapes;
}

}  // namespace

BenchShapes parse_shapes(std::string_view text, const std::string& where) {
  Json file;
  try {
    file = Json::parse(text);
  } catch (const Json::parse_error& error) {
    fail(where, "not JSON at byte {}", error.byte);
  }
  check(file.is_object(), where, "holds no object but {}", file.type_name());
  const std::vector<std::string> kinds{"mha", "train"};
  for (const auto& item : file.items()) {
    check(std::find(kinds.begin(), kinds.end(), item.key()) != kinds.end(), where,
          "unknown key '{}'{} (allowed: mha, train)", printable(item.key()), did_you_mean(item.key(), kinds));
  }
  BenchShapes shapes{shapes_of(file, "mha", where, attention_shape),
                     shapes_of(file, "train", where, training_shape)};
  check(!shapes.attention.empty() || !shapes.training.empty(), where, "holds no cases");
  return shapes;
}

BenchShapes read_shapes(const std::filesystem::path& file) {
  return parse_shapes(read_file(file), file.string());
}

}  // namespace headlab
