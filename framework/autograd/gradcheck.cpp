#include "framework/autograd/gradcheck.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "framework/autograd/backward.h"
#include "framework/core/random.h"

namespace headlab {

namespace {

// Rows of the comparison: each is a cotangent u, against which Σ_o u_o · ∂f_o/∂x_i is compared.
std::vector<Array> cotangents(const Shape& shape, std::int64_t input_size, const GradcheckOptions& options) {
  std::vector<Array> rows;
  if (shape.size() * input_size <= options.full_limit) {
    for (std::int64_t o = 0; o < shape.size(); ++o) {
      rows.push_back(Array::zeros(shape, DType::f64));
      rows.back().data<double>()[o] = 1;
    }
  } else {
    Random random(options.seed, Stream::statistics);
    rows.emplace_back(shape, DType::f64);
    for (double& u : rows.back().values<double>()) u = random.normal();
  }
  return rows;
}

double dot(const Array& a, const Array& b) {
  double sum = 0;
  for (std::int64_t i = 0; i < a.size(); ++i) sum += a.data<double>()[i] * b.data<double>()[i];
  return sum;
}

struct Worst {
  double excess = 0;
  std::string message;
};

}  // namespace

GradcheckResult gradcheck(const GradcheckFunction& function, std::vector<Tensor> inputs,
                          const GradcheckOptions& options) {
  std::int64_t input_size = 0;
  for (const Tensor& input : inputs) {
    if (!input.requires_grad()) continue;
    check(input.dtype() == DType::f64, "gradcheck", "inputs must be f64, not {}", name_of(input.dtype()));
    input_size += input.size();
  }
  bool any = false;
  for (const Tensor& input : inputs) any = any || input.requires_grad();
  check(any, "gradcheck", "no input requires a gradient");

  const Tensor result = function(inputs);
  const std::vector<Array> rows = cotangents(result.shape(), input_size, options);

  // Analytic: one backward a row.
  std::vector<std::vector<Array>> analytic(rows.size());
  for (std::size_t r = 0; r < rows.size(); ++r) {
    for (Tensor& input : inputs) input.clear_grad();
    if (result.requires_grad()) backward(result, {.seed = rows[r], .keep_graph = true});
    for (const Tensor& input : inputs) {
      analytic[r].push_back(input.has_grad() ? input.grad().copy() : Array::zeros(input.shape(), DType::f64));
    }
  }
  for (Tensor& input : inputs) input.clear_grad();

  // Numeric: two evaluations an input element serve all rows.
  Worst worst;
  const NoGrad no_grad;
  for (std::size_t k = 0; k < inputs.size(); ++k) {
    if (!inputs[k].requires_grad()) continue;
    for (std::int64_t i = 0; i < inputs[k].size(); ++i) {
      double& x = inputs[k].change().data<double>()[i];
      const double before = x;
      const double step = options.step * std::max(1.0, std::abs(before));
      x = before + step;
      const double above = x;
      const Array plus = function(inputs).value().copy();
      x = before - step;
      const double below = x;
      const Array minus = function(inputs).value().copy();
      x = before;
      for (std::size_t r = 0; r < rows.size(); ++r) {
        const double numeric = (dot(rows[r], plus) - dot(rows[r], minus)) / (above - below);
        const double exact = analytic[r][k].data<double>()[i];
        const double allowed = options.tolerance * std::max({1.0, std::abs(exact), std::abs(numeric)});
        const double excess = std::abs(exact - numeric) / allowed;
        if (!(excess <= std::max(1.0, worst.excess))) {
          worst.excess = std::isnan(excess) ? std::numeric_limits<double>::infinity() : excess;
          worst.message = fmt::format(
              "input {} of shape {}, index {}, {}: analytic {:.12g}, numeric {:.12g}, tolerance {:.3g}", k,
              inputs[k].shape(), i,
              rows.size() == 1 ? std::string("projection") : fmt::format("output {}", r), exact, numeric,
              allowed);
        }
      }
    }
  }
  return {worst.message};
}

}  // namespace headlab
