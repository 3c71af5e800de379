// The single operations that layers and training steps are made of, at the sizes that the shapes give them.
#include <map>

#include "framework/autograd/backward.h"
#include "framework/command/bench_case.h"
#include "framework/command/bench_random.h"
#include "framework/command/memory.h"
#include "framework/ops/attention.h"
#include "framework/ops/cross_entropy.h"
#include "framework/ops/elementwise.h"
#include "framework/ops/embedding.h"
#include "framework/ops/feed_forward.h"
#include "framework/ops/linear.h"
#include "framework/ops/norm.h"
#include "framework/ops/softmax.h"
#include "framework/optim/clip.h"

namespace headlab {

namespace {

double product(std::initializer_list<std::int64_t> sizes) {
  double result = 1;
  for (const std::int64_t size : sizes) result *= static_cast<double>(size);
  return result;
}

/// An operation ready to run: its inputs, what backward starts from, and the call.
struct Ready {
  std::vector<Tensor> inputs;
  Array upstream;  ///< absent for a result of one number
  std::function<Tensor()> forward;
};

/// What one pass counts.
struct Work {
  double flops = 0, bytes = 0;
};

class Operations {
 public:
  /// Both passes of an operation at one size, made by the shape `origin`.
  void add(const std::string& op, const std::string& size, const std::string& origin, Work forward, Work both,
           double numbers, std::function<Ready()> make) {
    const std::string name = op + "-" + size;
    add({.kind = BenchKind::ops,
         .name = name + "-forward",
         .names = {op},
         .flops = forward.flops,
         .bytes = forward.bytes,
         .prepare = [make, name, numbers]() -> std::function<void()> {
           check_fits(name, MemoryEstimate().add({}, 4 * numbers));
           return [ready = make()] {
             const NoGrad none;
             ready.forward();
           };
         }},
        origin);
    add({.kind = BenchKind::ops,
         .name = name,
         .names = {op},
         .flops = both.flops,
         .bytes = both.bytes,
         .prepare = [make, name, numbers]() -> std::function<void()> {
           check_fits(name, MemoryEstimate().add({}, 8 * numbers));
           return [ready = make()]() mutable {
             for (Tensor& input : ready.inputs) input.clear_grad();
             backward(ready.forward(), {.seed = ready.upstream});
           };
         }},
        origin);
  }
  void add(BenchCase single, const std::string& origin) {
    const auto found = at_.emplace(single.name, cases_.size());
    if (found.second) {
      single.names.push_back(single.name);
      cases_.push_back(std::move(single));
    }
    cases_[found.first->second].names.push_back(origin);
  }
  std::vector<BenchCase> take() { return std::move(cases_); }

  void linear(const std::string& origin, std::int64_t rows, std::int64_t in, std::int64_t out, bool bias) {
    const double flops = 2 * product({rows, in, out});
    add("linear", fmt::format("{}x{}x{}", rows, in, out), origin, {.flops = flops}, {.flops = 3 * flops},
        product({rows, in}) + product({in, out}) + product({rows, out}), [=] {
          const Tensor x(random_numbers({rows, in}, 1), true);
          const Tensor weight(random_numbers({out, in}, 2), true);
          const Tensor b = bias ? Tensor(random_numbers({out}, 3), true) : Tensor();
          return Ready{
              {x, weight, b}, random_numbers({rows, out}, 4), [=] { return headlab::linear(x, weight, b); }};
        });
  }

  void feed_forward(const std::string& origin, std::int64_t rows, std::int64_t d, std::int64_t hidden) {
    const double flops = 4 * product({rows, d, hidden});
    add("feed_forward_gelu", fmt::format("{}x{}x{}", rows, d, hidden), origin, {.flops = flops},
        {.flops = 3 * flops}, 2 * product({rows, d + hidden}) + 2 * product({d, hidden}), [=] {
          const Tensor x(random_numbers({rows, d}, 1), true);
          const FeedForwardWeights weights{
              Tensor(random_numbers({hidden, d}, 2), true), Tensor(random_numbers({hidden}, 3), true),
              Tensor(random_numbers({d, hidden}, 4), true), Tensor(random_numbers({d}, 5), true)};
          return Ready{{x, weights.up, weights.up_bias, weights.down, weights.down_bias},
                       random_numbers({rows, d}, 6),
                       [=] { return feed_forward_gelu(x, weights); }};
        });
  }

  void attention(const std::string& origin, std::int64_t batch, std::int64_t tokens, std::int64_t d_model,
                 std::int64_t heads, bool causal, const std::optional<TelemetryOptions>& telemetry) {
    const double flops = 4 * product({batch, tokens, tokens, d_model}) * (causal ? 0.5 : 1);
    const std::string size =
        fmt::format("{}x{}x{}-h{}{}", batch, tokens, d_model, heads, causal ? "-causal" : "");
    add("attention", size, origin, {.flops = flops}, {.flops = 3 * flops},
        4 * product({batch, tokens, d_model}), [=] {
          const Tensor qkv(random_numbers({batch, tokens, 3 * d_model}, 1), true);
          const AttentionOptions options{
              .heads = heads, .mask = causal ? Mask::causal() : Mask(), .telemetry = telemetry};
          return Ready{{qkv}, random_numbers({batch, tokens, d_model}, 2), [=] {
                         return headlab::attention(qkv, options).out;
                       }};
        });
  }

  /// An operation that reads and writes its array forward, and backward reads values and gradients and writes
  /// gradients.
  template <class Call>
  void map(const std::string& op, const std::string& origin, std::int64_t rows, std::int64_t n, Call call) {
    const double bytes = 4 * product({rows, n});
    add(op, fmt::format("{}x{}", rows, n), origin, {.bytes = 2 * bytes}, {.bytes = 5 * bytes},
        3 * product({rows, n}), [=] {
          const Tensor x(random_numbers({rows, n}, 1), true);
          return Ready{{x}, random_numbers({rows, n}, 2), [=] { return call(x); }};
        });
  }

  void layer_norm(const std::string& origin, std::int64_t rows, std::int64_t n) {
    const double bytes = 4 * product({rows, n});
    add("layer_norm", fmt::format("{}x{}", rows, n), origin, {.bytes = 2 * bytes}, {.bytes = 5 * bytes},
        3 * product({rows, n}), [=] {
          const Tensor x(random_numbers({rows, n}, 1), true);
          const Tensor gain(random_numbers({n}, 2), true);
          const Tensor bias(random_numbers({n}, 3), true);
          return Ready{{x, gain, bias}, random_numbers({rows, n}, 4), [=] {
                         return headlab::layer_norm(x, gain, bias);
                       }};
        });
  }

  void cross_entropy(const std::string& origin, std::int64_t rows, std::int64_t classes) {
    const double bytes = 4 * product({rows, classes});
    add("cross_entropy", fmt::format("{}x{}", rows, classes), origin, {.bytes = bytes}, {.bytes = 3 * bytes},
        product({rows, classes}), [=] {
          const Tensor x(random_numbers({rows, classes}, 1), true);
          return Ready{{x}, Array(), [=, targets = random_tokens({rows}, classes, 2)] {
                         return headlab::cross_entropy(x, targets).loss;
                       }};
        });
  }

  void embedding(const std::string& origin, std::int64_t rows, std::int64_t vocabulary, std::int64_t d) {
    const double bytes = 4 * product({rows, d});
    // All of the table's gradient is written.
    add("embedding", fmt::format("{}-of-{}x{}", rows, vocabulary, d), origin, {.bytes = 2 * bytes},
        {.bytes = 3 * bytes + 4 * product({vocabulary, d})}, product({vocabulary, d}) + product({rows, d}),
        [=] {
          const Tensor weight(random_numbers({vocabulary, d}, 1), true);
          return Ready{
              {weight}, random_numbers({rows, d}, 2), [=, ids = random_tokens({rows}, vocabulary, 3)] {
                return headlab::embedding(ids, weight);
              }};
        });
  }

  void update(const std::string& origin, std::int64_t numbers);

 private:
  std::vector<BenchCase> cases_;
  std::map<std::string, std::size_t> at_;
};

/// Parameters of a training, with gradients.
struct Parameters {
  explicit Parameters(std::int64_t numbers)
      : weight(random_numbers({numbers}, 1), true), buffer({{"weight", weight}}), optimiser(buffer) {
    backward(weight, {.seed = random_numbers({numbers}, 2)});
  }
  Tensor weight;
  ParameterBuffer buffer;
  AdamW optimiser;
};

void Operations::update(const std::string& origin, std::int64_t numbers) {
  const double bytes = 4 * product({numbers});
  const auto step = [&](const std::string& op, double passes, auto call) {
    const std::string name = fmt::format("{}-{}", op, numbers);
    add({.kind = BenchKind::ops,
         .name = name,
         .names = {op},
         .bytes = passes * bytes,
         .prepare = [=]() -> std::function<void()> {
           check_fits(name, MemoryEstimate().add({numbers}, 4));
           return [call, parameters = std::make_shared<Parameters>(numbers)] { call(*parameters); };
         }},
        origin);
  };
  step("clip", 1, [](Parameters& parameters) { clipping_of(parameters.buffer, 1); });
  step("adamw", 7, [](Parameters& parameters) { parameters.optimiser.step(1e-3, {.factor = 0.5}); });
}

}  // namespace

std::vector<BenchCase> operation_cases(const BenchShapes& shapes, bool telemetry) {
  const std::optional<TelemetryOptions> watched = telemetry ? std::optional(bench_telemetry()) : std::nullopt;
  Operations operations;
  for (const AttentionShape& s : shapes.attention) {
    const std::int64_t rows = s.batch * s.tokens;
    operations.linear(s.name, rows, s.d_model, 3 * s.d_model, true);
    operations.attention(s.name, s.batch, s.tokens, s.d_model, s.heads, s.causal, watched);
    operations.linear(s.name, rows, s.d_model, s.d_model, true);
  }
  for (const TrainingShape& s : shapes.training) {
    const std::int64_t rows = s.batch * s.tokens;
    operations.embedding(s.name, rows, s.vocabulary, s.d_model);
    operations.layer_norm(s.name, rows, s.d_model);
    operations.linear(s.name, rows, s.d_model, 3 * s.d_model, true);
    operations.attention(s.name, s.batch, s.tokens, s.d_model, s.heads, true, watched);
    operations.map("softmax", s.name, s.batch * s.heads * s.tokens, s.tokens,
                   [](const Tensor& x) { return softmax(x); });
    operations.linear(s.name, rows, s.d_model, s.d_model, true);
    operations.feed_forward(s.name, rows, s.d_model, 4 * s.d_model);
    operations.linear(s.name, rows, s.d_model, 4 * s.d_model, true);
    operations.map("gelu", s.name, rows, 4 * s.d_model, [](const Tensor& x) { return gelu(x); });
    operations.linear(s.name, rows, 4 * s.d_model, s.d_model, true);
    operations.linear(s.name, rows, s.d_model, s.vocabulary, false);
    operations.cross_entropy(s.name, rows, s.vocabulary);
    operations.update(s.name, static_cast<std::int64_t>(training_needs(s).parameters()));
  }
  return operations.take();
}

}  // namespace headlab
