// What the tests of differentiable operations share.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "framework/autograd/backward.h"
#include "framework/core/parallel.h"
#include "tests/support/errors.h"
#include "tests/support/goldens.h"
#include "tests/support/random_array.h"

namespace headlab {

/// Moves every number half a unit further from 0, for functions that are not smooth there.
inline Array away_from_zero(Array x) {
  for (double& v : x.values<double>()) v += v < 0 ? -0.5 : 0.5;
  return x;
}

inline std::vector<double> numbers(const Array& x) {
  std::vector<double> list;
  for (std::int64_t i = 0; i < x.size(); ++i) list.push_back(x.at(i));
  return list;
}

/// Runs f with 1, 2, 3, 4 and 8 threads; the arrays must agree bit for bit, and some loop must have been
/// parallel.
inline void expect_same_bits_for_any_threads(const std::function<std::vector<Array>()>& f) {
  set_threads(1);
  const std::vector<Array> want = f();
  for (const int count : {2, 3, 4, 8}) {
    set_threads(count);
    reset_parallel_counters();
    const std::vector<Array> got = f();
    EXPECT_GT(parallel_counters().parallel_loops, 0) << "too small to be parallel";
    for (std::size_t i = 0; i < want.size(); ++i) {
      EXPECT_TRUE(same_bits(got[i], want[i])) << "array " << i << ", " << count << " threads";
    }
  }
  set_threads(0);
}

/// A case of ops.safetensors: value and gradients of all floating inputs, in f64 to 1e-10 and f32 to 1e-5.
inline void expect_golden(const std::string& name,
                          const std::function<Tensor(std::span<const Tensor>)>& function) {
  const Golden golden("ops");
  for (const DType dtype : {DType::f64, DType::f32}) {
    const double tolerance = dtype == DType::f64 ? 1e-10 : 1e-5;
    std::vector<Tensor> inputs;
    std::vector<std::string> names;
    for (const auto& input : golden.find_case(name).at("inputs")) {
      names.push_back(input.get<std::string>());
      const Array value = golden(name + "." + names.back());
      const bool floating = value.dtype() == DType::f64;
      inputs.emplace_back(floating ? value.to(dtype) : value, floating);
    }
    const Tensor out = function(inputs);
    expect_close(out.value(), golden(name + ".out"), tolerance, name);
    backward(out, {.seed = golden(name + ".d_out", dtype)});
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      if (!inputs[i].requires_grad()) continue;
      EXPECT_EQ(inputs[i].grad().dtype(), dtype);
      expect_close(inputs[i].grad(), golden(name + ".d_" + names[i]), tolerance, name + ".d_" + names[i]);
    }
  }
}

}  // namespace headlab
