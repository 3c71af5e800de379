// headlab's matrix product beside Eigen's on one thread, over the shapes that training meets. Both run in
// turns; the counters are the best of all turns: GFLOP/s of each, and ours / Eigen's.
#include "framework/kernels/gemm.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <iterator>
#include <string>
#include <vector>

#include <Eigen/Dense>
#include <benchmark/benchmark.h>

#include "framework/core/array.h"
#include "framework/core/random.h"

namespace headlab::kernels {
namespace {

struct Shape3 {
  std::int64_t m, n, k;
};
constexpr Shape3 shapes[] = {
    {64, 64, 64},   {128, 128, 128}, {256, 256, 256}, {512, 512, 512},   {1024, 1024, 1024}, {512, 64, 64},
    {512, 192, 64}, {64, 64, 512},   {768, 512, 128}, {1024, 2048, 512}, {1024, 512, 2048},  {512, 256, 64},
    {512, 64, 256}, {16, 16, 8},     {16, 8, 16},     {32, 32, 16},      {64, 64, 16},       {64, 16, 64},
    {1, 192, 64},   {1, 512, 512},   {7, 512, 128},
};
struct Form {
  const char* name;
  Transpose a, b;
};
constexpr Form forms[] = {{"NN", Transpose::no, Transpose::no},
                          {"NT", Transpose::no, Transpose::yes},
                          {"TN", Transpose::yes, Transpose::no}};

using Matrix = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

template <class Product>
double best_seconds(double best, std::int64_t repeats, const Product& product) {
  const auto start = std::chrono::steady_clock::now();
  for (std::int64_t i = 0; i < repeats; ++i) product();
  const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - start;
  return std::min(best, passed.count() / static_cast<double>(repeats));
}

void compare(benchmark::State& state, Form form, Shape3 s) {
  const bool ta = form.a == Transpose::yes, tb = form.b == Transpose::yes;
  // In memory as training gets it.
  std::vector<Array> memory;
  const auto matrix = [&](std::int64_t rows, std::int64_t columns) {
    memory.emplace_back(Shape{rows, columns});
    return Eigen::Map<Matrix>(memory.back().data<float>(), rows, columns);
  };
  Eigen::Map<Matrix> a = matrix(ta ? s.k : s.m, ta ? s.m : s.k), b = matrix(tb ? s.n : s.k, tb ? s.k : s.n);
  Eigen::Map<Matrix> c = matrix(s.m, s.n), d = matrix(s.m, s.n);
  Random random(1, Stream::evaluation);
  for (Eigen::Map<Matrix>* x : {&a, &b}) {
    std::generate_n(x->data(), x->size(), [&] { return static_cast<float>(random.normal()); });
  }
  const double flops = 2.0 * static_cast<double>(s.m) * static_cast<double>(s.n) * static_cast<double>(s.k);
  const auto repeats = static_cast<std::int64_t>(std::ceil(4e6 / flops));
  double ours = 1e9, eigen = 1e9;
  for (auto _ : state) {
    ours = best_seconds(ours, repeats, [&] {
      gemm(form.a, form.b, s.m, s.n, s.k, a.data(), a.cols(), b.data(), b.cols(), 0.0F, c.data(), s.n);
      benchmark::ClobberMemory();
    });
    eigen = best_seconds(eigen, repeats, [&] {
      if (ta) {
        d.noalias() = a.transpose() * b;
      } else if (tb) {
        d.noalias() = a * b.transpose();
      } else {
        d.noalias() = a * b;
      }
      benchmark::ClobberMemory();
    });
  }
  if ((c - d).norm() > 1e-4F * d.norm()) state.SkipWithError("the products differ");
  state.counters["GFLOP/s"] = flops / ours / 1e9;
  state.counters["Eigen"] = flops / eigen / 1e9;
  state.counters["ratio"] = eigen / ours;
}

/// A linear map of `rows` rows: forward, the gradient of its input, that of its weight.
struct Map {
  const char* name;
  std::int64_t rows, in, out;
};
constexpr Map training_maps[] = {
    {"toy", 1024, 64, 192},          {"toy", 1024, 64, 64},          {"toy", 1024, 64, 256},
    {"toy", 1024, 256, 64},          {"nanogpt-cpu", 768, 128, 384}, {"nanogpt-cpu", 768, 128, 128},
    {"nanogpt-cpu", 768, 128, 512},  {"nanogpt-cpu", 768, 512, 128}, {"nanogpt-cpu", 768, 128, 65},
    {"nanogpt-6L", 1024, 384, 1152}, {"nanogpt-6L", 1024, 384, 384}, {"nanogpt-6L", 1024, 384, 1536},
    {"nanogpt-6L", 1024, 1536, 384}, {"gpt2", 256, 768, 2304},       {"gpt2", 256, 768, 768},
    {"gpt2", 256, 768, 3072},        {"gpt2", 256, 3072, 768},       {"gpt2", 256, 768, 50257},
};

const bool registered = [] {
  for (const Map& map : training_maps) {
    const Shape3 passes[] = {
        {map.rows, map.out, map.in}, {map.rows, map.in, map.out}, {map.out, map.in, map.rows}};
    const Form as[] = {{"forward", Transpose::no, Transpose::yes},
                       {"input", Transpose::no, Transpose::no},
                       {"weight", Transpose::yes, Transpose::no}};
    for (std::size_t pass = 0; pass < std::size(passes); ++pass) {
      const std::string name = std::string("training/") + map.name + "/" + std::to_string(map.in) + "to" +
                               std::to_string(map.out) + "/" + as[pass].name;
      benchmark::RegisterBenchmark(name.c_str(), compare, as[pass], passes[pass])->MinTime(0.2);
    }
  }
  for (const Shape3& s : shapes) {
    for (const Form& form : forms) {
      const std::string name = std::string("gemm/") + form.name + "/" + std::to_string(s.m) + "x" +
                               std::to_string(s.n) + "x" + std::to_string(s.k);
      benchmark::RegisterBenchmark(name.c_str(), compare, form, s)
          ->MinTime(s.m * s.n * s.k > 1 << 24 ? 0.5 : 0.05);
    }
  }
  return true;
}();

}  // namespace
}  // namespace headlab::kernels
