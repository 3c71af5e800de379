// Reference values from tests/goldens, and comparing with them.
#pragma once

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <string>
#include <string_view>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "framework/core/array.h"
#include "framework/files/safetensors.h"

namespace headlab {

/// One file of tests/goldens: Golden g("ops"); for (const auto& c : g.cases()) … g("softmax_axis0.x").
class Golden {
 public:
  explicit Golden(const std::string& name)
      : content_(read_safetensors(std::filesystem::path(HEADLAB_GOLDENS) / (name + ".safetensors"))) {
    const auto found = content_.metadata.find("cases");
    if (found != content_.metadata.end()) cases_ = nlohmann::json::parse(found->second);
  }
  const Metadata& metadata() const { return content_.metadata; }
  const NamedArrays& arrays() const { return content_.arrays; }
  /// A list of objects, each with the `name` and the options of a case.
  const nlohmann::json& cases() const { return cases_; }
  const nlohmann::json& find_case(std::string_view name) const {
    for (const auto& c : cases_) {
      if (c.at("name").get<std::string>() == name) return c;
    }
    fail("golden", "no case {}", name);
  }
  bool has(const std::string& name) const { return content_.arrays.count(name) != 0; }
  /// A copy as it is in the file.
  Array operator()(const std::string& name) const {
    const auto found = content_.arrays.find(name);
    check(found != content_.arrays.end(), "golden", "no array {}", name);
    return found->second.copy();
  }
  /// Converted.
  Array operator()(const std::string& name, DType dtype) const { return (*this)(name).to(dtype); }

 private:
  Safetensors content_;
  nlohmann::json cases_ = nlohmann::json::array();
};

/// |got - want| <= tolerance * max(1, max|want|) for every element; types may differ, shapes may not. NaN is
/// close to NaN only, an infinity to itself only. EXPECT_TRUE(close(…)) or expect_close(…).
inline testing::AssertionResult close(const Array& got, const Array& want, double tolerance,
                                      std::string_view name = "array") {
  if (!got || !want) {
    return testing::AssertionFailure()
           << name << ": " << (got ? "the wanted" : "the computed") << " array is absent";
  }
  if (!(got.shape() == want.shape())) {
    return testing::AssertionFailure()
           << name << ": shape " << got.shape().str() << ", wanted " << want.shape().str();
  }
  double scale = 1;
  for (std::int64_t i = 0; i < want.size(); ++i) {
    if (std::isfinite(want.at(i))) scale = std::max(scale, std::abs(want.at(i)));
  }
  std::int64_t wrong = 0;
  std::int64_t worst = 0;
  double largest = -1;
  for (std::int64_t i = 0; i < want.size(); ++i) {
    const double a = got.at(i);
    const double b = want.at(i);
    if (a == b || (std::isnan(a) && std::isnan(b)) || std::abs(a - b) <= tolerance * scale) continue;
    ++wrong;
    const double distance = std::isfinite(a - b) ? std::abs(a - b) : HUGE_VAL;
    if (distance > largest) {
      largest = distance;
      worst = i;
    }
  }
  if (wrong == 0) return testing::AssertionSuccess();
  return testing::AssertionFailure() << fmt::format(
             "{}: {} of {} elements of shape {} differ, worst at {}: got {:.17g}, wanted {:.17g}, "
             "difference {:.3g}, allowed {:.3g}",
             name, wrong, want.size(), want.shape(), worst, got.at(worst), want.at(worst), largest,
             tolerance * scale);
}

inline void expect_close(const Array& got, const Array& want, double tolerance,
                         std::string_view name = "array") {
  EXPECT_TRUE(close(got, want, tolerance, name));
}

/// Same type, shape and bits.
inline testing::AssertionResult same_bits(const Array& a, const Array& b) {
  if (!(a.shape() == b.shape()) || a.dtype() != b.dtype()) {
    return testing::AssertionFailure() << a.shape().str() << " of " << name_of(a.dtype()) << " and "
                                       << b.shape().str() << " of " << name_of(b.dtype());
  }
  const auto* x = static_cast<const unsigned char*>(a.raw());
  const auto* y = static_cast<const unsigned char*>(b.raw());
  for (std::int64_t i = 0; i < a.bytes(); ++i) {
    if (x[i] != y[i]) {
      const std::int64_t element = i / bytes_of(a.dtype());
      return testing::AssertionFailure()
             << fmt::format("element {} differs: {:.17g} and {:.17g}", element, a.at(element), b.at(element));
    }
  }
  return testing::AssertionSuccess();
}

}  // namespace headlab
