#include "framework/train/conformance.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <random>

#include "framework/autograd/gradcheck.h"
#include "framework/core/parallel.h"
#include "framework/core/pool.h"
#include "framework/core/profile.h"
#include "framework/files/safetensors.h"
#include "framework/train/layer_pass.h"

namespace headlab {

namespace {

constexpr double float_tolerance = 1e-4;

class TemporaryFile {
 public:
  TemporaryFile()
      : path_(std::filesystem::temp_directory_path() /
              fmt::format("headlab-check-layer-{:08x}.safetensors", std::random_device()())) {}
  ~TemporaryFile() {
    std::error_code ignored;
    std::filesystem::remove(path_, ignored);
  }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

class ThreadScope {
 public:
  ThreadScope() : before_(threads()) {}
  ~ThreadScope() { set_threads(before_); }
  ThreadScope(const ThreadScope&) = delete;
  ThreadScope& operator=(const ThreadScope&) = delete;

 private:
  int before_;
};

class Kit {
 public:
  Kit(const KnownLayer& layer, std::uint64_t seed)
      : layer_(layer), seed_(seed), large_(draw_layer_inputs(large_layer_inputs(layer), DType::f32, seed)) {}

  Conformance all() {
    gradients();
    one("f32 as f64", [&] { return float_as_double(); });
    one("repeatable", [&] { return repeatable(); });
    one("save and load", [&] { return save_and_load(); });
    one("threads", [&] { return any_threads(); });
    one("memory", [&] { return memory(); });
    one("time", [&] { return time(); });
    return std::move(result_);
  }

 private:
  // A check returns what it saw, or throws what is wrong.
  template <class F>
  void one(std::string name, const F& f) {
    ConformanceCheck check{std::move(name), false, {}};
    try {
      check.detail = f();
      check.passed = true;
    } catch (const std::exception& error) {
      check.detail = error.what();
    }
    result_.checks.push_back(std::move(check));
  }

  // Every input and parameter by itself, so that the report says which one is wrong.
  void gradients() {
    std::unique_ptr<Module> module;
    std::vector<Tensor> inputs;
    std::vector<std::pair<std::string, Tensor>> leaves;
    try {
      module = build_layer(layer_, DType::f64, seed_);
      inputs = draw_layer_inputs(layer_.inputs, DType::f64, seed_);
      for (std::size_t i = 0; i < inputs.size(); ++i) {
        if (inputs[i].requires_grad()) leaves.emplace_back(fmt::format("input {}", i), inputs[i]);
      }
      for (const NamedParameter& named : module->parameters())
        leaves.emplace_back(named.path, named.parameter->tensor());
    } catch (const std::exception& error) {
      result_.checks.push_back({"gradients", false, error.what()});
      return;
    }
    for (const auto& leaf : leaves) {
      one("gradient of " + leaf.first, [&] {
        const auto function = [&](std::span<const Tensor>) { return layer_.call(*module, inputs); };
        const GradcheckResult checked = gradcheck(function, {leaf.second}, {.seed = seed_});
        if (!checked) throw Error(checked.message);
        return fmt::format("{} agrees with differences", leaf.second.shape());
      });
    }
  }

  std::string float_as_double() {
    const auto single = build_layer(layer_, DType::f32, seed_);
    const auto twice = build_layer(layer_, DType::f64, seed_);
    twice->load_state(single->state());
    std::vector<Tensor> x = draw_layer_inputs(layer_.inputs, DType::f32, seed_);
    std::vector<Tensor> x64;
    for (const Tensor& input : x) {
      const bool ids = input.dtype() == DType::i64;
      x64.emplace_back(ids ? input.value() : input.value().to(DType::f64), !ids);
    }
    const LayerPass found = run_layer(layer_, *single, x);
    const LayerPass wanted = run_layer(layer_, *twice, x64);
    check(found.arrays.size() == wanted.arrays.size(), "f32", "other gradients than in f64");
    double most = 0;
    for (std::size_t i = 0; i < found.arrays.size(); ++i) {
      const Array& a = found.arrays[i].second;
      const Array& b = wanted.arrays[i].second;
      check(a.shape() == b.shape(), "f32", "{} has shape {}, in f64 {}", found.arrays[i].first, a.shape(),
            b.shape());
      double scale = 1, apart = 0;
      for (std::int64_t e = 0; e < a.size(); ++e) scale = std::max(scale, std::abs(b.at(e)));
      for (std::int64_t e = 0; e < a.size(); ++e) {
        const double here = std::abs(a.at(e) - b.at(e)) / scale;
        check(here <= float_tolerance, "f32", "{}, element {}: {:.7g}, in f64 {:.7g}", found.arrays[i].first,
              e, a.at(e), b.at(e));
        apart = std::max(apart, here);
      }
      most = std::max(most, apart);
    }
    return fmt::format("largest difference {:.0e} of the largest number", most);
  }

  std::string repeatable() {
    const auto module = build_layer(layer_, DType::f32, seed_);
    const std::map<std::string, Array> before = module->state();
    const LayerPass first = run_layer(layer_, *module, large_);
    for (int call = 2; call <= 3; ++call) {
      const std::string differs = difference(first, run_layer(layer_, *module, large_));
      check(differs.empty(), "call", "{} differs between call 1 and call {} on the same input", differs,
            call);
    }
    for (const auto& [name, value] : module->state()) {
      const Array& was = before.at(name);
      check(value.size() == 0 ||
                std::memcmp(value.raw(), was.raw(), static_cast<std::size_t>(was.bytes())) == 0,
            "call", "a call changes the parameter {}", name);
    }
    return "three calls, the same bits";
  }

  std::string save_and_load() {
    const auto module = build_layer(layer_, DType::f32, seed_);
    // What a layer gathers in training must be in the file, too.
    module->train();
    run_layer(layer_, *module, large_);
    module->eval();
    const TemporaryFile file;
    write_safetensors(file.path(), module->state());
    const auto loaded = build_layer(layer_, DType::f32, seed_ + 1);
    loaded->load_state(read_safetensors(file.path()).arrays);
    const std::string differs =
        difference(run_layer(layer_, *module, large_), run_layer(layer_, *loaded, large_));
    check(differs.empty(), "loaded layer",
          "{} differs from the saved layer's: something that matters is no parameter", differs);
    return fmt::format("{} parameters, the same bits", module->parameter_count());
  }

  std::string any_threads() {
    const ThreadScope scope;
    const auto module = build_layer(layer_, DType::f32, seed_);
    set_threads(1);
    const LayerPass one_thread = run_layer(layer_, *module, large_);
    std::int64_t loops = 0;
    for (const int count : {2, 3, 8}) {
      set_threads(count);
      reset_parallel_counters();
      const std::string differs = difference(one_thread, run_layer(layer_, *module, large_));
      check(differs.empty(), "threads", "{} differs between 1 and {} threads", differs, count);
      loops = parallel_counters().parallel_loops;
    }
    return loops > 0 ? fmt::format("1, 2, 3, 8: the same bits; {} shared",
                                   loops == 1 ? "1 loop was" : fmt::format("{} loops were", loops))
                     : "the same bits, but no loop was large enough to be shared: give larger inputs";
  }

  std::string memory() {
    const auto module = build_layer(layer_, DType::f32, seed_);
    for (int call = 0; call < 2; ++call) run_layer(layer_, *module, large_);
    const pool::Counters before = pool::counters();
    run_layer(layer_, *module, large_);
    const pool::Counters after = pool::counters();
    result_.cost.allocations = after.allocations - before.allocations;
    result_.cost.parameters = module->parameter_count();
    check(after.from_system == before.from_system, "call", "{} of {} blocks came from the system",
          after.from_system - before.from_system, result_.cost.allocations);
    check(after.live_blocks == before.live_blocks, "call", "keeps {} more blocks ({} bytes) at every call",
          after.live_blocks - before.live_blocks, after.live_bytes - before.live_bytes);
    return fmt::format("{} blocks a call, none new from the system, none kept", result_.cost.allocations);
  }

  std::string time() {
    const auto module = build_layer(layer_, DType::f32, seed_);
    std::vector<double> milliseconds;
    for (int call = 0; call < 9; ++call) {
      const auto begin = std::chrono::steady_clock::now();
      run_layer(layer_, *module, large_);
      milliseconds.push_back(
          std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count());
    }
    std::nth_element(milliseconds.begin(), milliseconds.begin() + 4, milliseconds.end());
    result_.cost.milliseconds = milliseconds[4];
    profile::Recording recording;
    run_layer(layer_, *module, large_);
    for (const profile::Line& line : recording.stop().lines) result_.cost.flops += line.flops;
    return fmt::format("{:.3f} ms forward and backward, {:.3g} MFLOP, {:.2f} GFLOP/s",
                       result_.cost.milliseconds, result_.cost.flops / 1e6,
                       result_.cost.flops / 1e6 / std::max(result_.cost.milliseconds, 1e-9));
  }

  const KnownLayer& layer_;
  std::uint64_t seed_;
  std::vector<Tensor> large_;
  Conformance result_;
};

}  // namespace

bool Conformance::passed() const {
  return std::all_of(checks.begin(), checks.end(), [](const ConformanceCheck& c) { return c.passed; });
}

Conformance check_conformance(const KnownLayer& layer, std::uint64_t seed) {
  check(layer.build && layer.call, "check-layer", "'{}' has no builder or no call", layer.name);
  return Kit(layer, seed).all();
}

}  // namespace headlab
