#include "framework/files/safetensors_header.h"

#include <algorithm>
#include <optional>
#include <vector>

#include <nlohmann/json.hpp>

#include "framework/core/check.h"

namespace headlab {
namespace {

constexpr std::array all_dtypes{DType::f32, DType::f64, DType::i64, DType::u8};

// A text from the file, fit for an error message.
std::string shown(std::string_view text) {
  std::string result = "\"";
  for (const char c : text.substr(0, 60)) result += static_cast<unsigned char>(c) < 0x20 ? '?' : c;
  return result + (text.size() > 60 ? "…\"" : "\"");
}

// Walks the JSON as the parser meets it. The format has three levels, so anything deeper, or of another kind
// than expected, ends the walk with an error on the spot.
class Walk final : public nlohmann::json_sax<nlohmann::json> {
 public:
  explicit Walk(const std::string& where) : where_(where) {}
  SafetensorsHeader take() { return std::move(header_); }

  bool null() override { return unexpected("null"); }
  bool boolean(bool) override { return unexpected("a truth value"); }
  bool binary(binary_t&) override { return unexpected("binary data"); }
  bool number_integer(number_integer_t value) override {
    // The parser calls this for numbers with a minus sign.
    if (!in_list()) return unexpected("a number");
    fail_in_tensor("{} holds {}, needs numbers from 0 on", key_, value);
  }
  bool number_float(number_float_t, const string_t& text) override {
    if (!in_list()) return unexpected("a number");
    fail_in_tensor("{} holds {}, needs whole numbers below 2^63", key_, shown(text));
  }
  bool number_unsigned(number_unsigned_t value) override {
    if (!in_list()) return unexpected("a number");
    if (value > INT64_MAX) fail_in_tensor("{} holds {}, needs whole numbers below 2^63", key_, value);
    const std::size_t most = level_ == Level::shape ? Shape::max_rank : 2;
    if (list_.size() == most) fail_in_tensor("{} has more than {} numbers", key_, most);
    list_.push_back(static_cast<std::int64_t>(value));
    return true;
  }
  bool string(string_t& value) override {
    if (level_ == Level::metadata) {
      header_.metadata[key_] = std::move(value);
      return true;
    }
    if (level_ != Level::tensor || key_ != "dtype") return unexpected("a string");
    const auto* const found = std::find_if(all_dtypes.begin(), all_dtypes.end(),
                                           [&](DType dtype) { return value == safetensors_name_of(dtype); });
    if (found == all_dtypes.end()) {
      fail_in_tensor("type {} is not known, F32, F64, I64 and U8 are", shown(value));
    }
    dtype_ = *found;
    return true;
  }

  bool start_object(std::size_t) override {
    if (level_ == Level::outside) {
      level_ = Level::file;
      return true;
    }
    if (level_ != Level::file) return unexpected("an object");
    if (name_ == "__metadata__") {
      level_ = Level::metadata;
    } else {
      level_ = Level::tensor;
      dtype_.reset();
      shape_.reset();
      offsets_.reset();
    }
    return true;
  }
  bool key(string_t& name) override {
    if (level_ == Level::file) {
      const bool is_metadata = name == "__metadata__";
      check(is_metadata ? !had_metadata_ : header_.entries.count(name) == 0, where_,
            "header: the name {} is there twice", shown(name));
      had_metadata_ = had_metadata_ || is_metadata;
      name_ = std::move(name);
      return true;
    }
    if (level_ == Level::metadata) {
      check(header_.metadata.count(name) == 0, where_, "header: the metadata key {} is there twice",
            shown(name));
      key_ = std::move(name);
      return true;
    }
    const bool twice =
        (name == "dtype" && dtype_) || (name == "shape" && shape_) || (name == "data_offsets" && offsets_);
    if (twice) fail_in_tensor("{} is there twice", name);
    if (name != "dtype" && name != "shape" && name != "data_offsets") {
      fail_in_tensor("{} is not known, dtype, shape and data_offsets are", shown(name));
    }
    key_ = std::move(name);
    return true;
  }
  bool end_object() override {
    if (level_ == Level::tensor) finish_tensor();
    level_ = level_ == Level::file ? Level::outside : Level::file;
    return true;
  }
  bool start_array(std::size_t) override {
    if (level_ != Level::tensor || key_ == "dtype") return unexpected("a list");
    level_ = key_ == "shape" ? Level::shape : Level::offsets;
    list_.clear();
    return true;
  }
  bool end_array() override {
    if (level_ == Level::shape) {
      try {
        shape_ = Shape(std::span<const std::int64_t>(list_));
      } catch (const Error& error) {
        fail_in_tensor("{}", error.what());
      }
    } else {
      if (list_.size() != 2) fail_in_tensor("data_offsets has {} numbers, needs 2", list_.size());
      offsets_ = {list_[0], list_[1]};
    }
    level_ = Level::tensor;
    return true;
  }
  bool parse_error(std::size_t position, const std::string&, const nlohmann::json::exception&) override {
    fail(where_, "header: not JSON at byte {}", position);
  }

 private:
  enum class Level { outside, file, metadata, tensor, shape, offsets };

  bool in_list() const { return level_ == Level::shape || level_ == Level::offsets; }

  template <class... Args>
  [[noreturn]] void fail_in_tensor(fmt::format_string<Args...> format, Args&&... args) const {
    fail(where_, "header: tensor {}: {}", shown(name_), fmt::format(format, std::forward<Args>(args)...));
  }

  [[noreturn]] bool unexpected(std::string_view what) const {
    switch (level_) {
      case Level::outside:
        fail(where_, "header: {} where the object of the file should be", what);
      case Level::file:
        fail(where_, "header: {} as the value of {}, needs an object", what, shown(name_));
      case Level::metadata:
        fail(where_, "header: {} as the metadata of {}, needs a string", what, shown(key_));
      default:
        fail_in_tensor("{} inside {}", what, key_.empty() ? std::string("it") : key_);
    }
  }

  void finish_tensor() {
    if (!dtype_) fail_in_tensor("has no dtype");
    if (!shape_) fail_in_tensor("has no shape");
    if (!offsets_) fail_in_tensor("has no data_offsets");
    const auto [begin, end] = *offsets_;
    std::int64_t bytes = 0;
    if (__builtin_mul_overflow(shape_->size(), bytes_of(*dtype_), &bytes)) {
      fail_in_tensor("{} of {} needs more than 2^63 bytes", *shape_, safetensors_name_of(*dtype_));
    }
    if (end < begin || end - begin != bytes) {
      fail_in_tensor("{} of {} needs {} bytes, data_offsets are [{}, {}]", *shape_,
                     safetensors_name_of(*dtype_), bytes, begin, end);
    }
    header_.entries[std::move(name_)] = {*dtype_, *shape_, begin, end};
  }

  const std::string& where_;
  SafetensorsHeader header_;
  Level level_ = Level::outside;
  std::string name_;  // of the tensor
  std::string key_;   // inside it, or inside the metadata
  bool had_metadata_ = false;
  std::optional<DType> dtype_;
  std::optional<Shape> shape_;
  std::optional<std::pair<std::int64_t, std::int64_t>> offsets_;
  std::vector<std::int64_t> list_;
};

// Every byte of the data belongs to exactly one tensor.
void check_layout(const SafetensorsHeader& header, std::int64_t data_bytes, const std::string& where) {
  using Item = std::pair<const std::string, SafetensorsReader::Entry>;
  std::vector<const Item*> order;
  order.reserve(header.entries.size());
  for (const Item& item : header.entries) order.push_back(&item);
  std::sort(order.begin(), order.end(), [](const Item* a, const Item* b) {
    return std::pair(a->second.begin, a->second.end) < std::pair(b->second.begin, b->second.end);
  });
  std::int64_t end = 0;
  for (const Item* item : order) {
    if (item->second.begin != end) {
      fail(where, "header: tensor {} begins at byte {} of the data, the one before it ends at {}",
           shown(item->first), item->second.begin, end);
    }
    end = item->second.end;
  }
  check(end == data_bytes, where, "header: the tensors take {} bytes, the file has {}", end, data_bytes);
}

}  // namespace

std::string_view safetensors_name_of(DType dtype) {
  switch (dtype) {
    case DType::f32:
      return "F32";
    case DType::f64:
      return "F64";
    case DType::i64:
      return "I64";
    case DType::u8:
      return "U8";
  }
  return "?";
}

SafetensorsHeader parse_safetensors_header(std::string_view text, std::int64_t data_bytes,
                                           const std::string& where) {
  check(!text.empty() && text.front() == '{', where, "header: does not begin with an opening brace");
  // The parser would take a zero byte for the end of the text.
  check(text.find('\0') == std::string_view::npos, where, "header: holds a zero byte");
  Walk walk(where);
  nlohmann::json::sax_parse(text.begin(), text.end(), &walk);
  SafetensorsHeader header = walk.take();
  check_layout(header, data_bytes, where);
  return header;
}

std::string json_string(const std::string& text, const std::string& where) {
  try {
    return nlohmann::json(text).dump();
  } catch (const nlohmann::json::exception&) {
    fail(where, "cannot write {}: not UTF-8", shown(text));
  }
}

}  // namespace headlab
