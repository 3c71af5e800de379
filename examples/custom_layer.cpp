// How to extend headlab: a new differentiable operation, a layer built on it, and a model with that layer.
//
// The operation smears keys: each key is mixed with the one before it by a share that is learned. With it
// *one* attention layer does induction (find where the current token was before, copy what came next), which
// otherwise takes two layers: the key of position j then also tells which token stood at j − 1.
//
//   custom_layer                       trains models with and without it
//   custom_layer check-layer smeared   gradients, save and load, threads, memory and time of the layer
#include <cmath>

#include <fmt/core.h>

#include "framework/autograd/node.h"
#include "framework/command/run.h"
#include "framework/data/induction.h"
#include "framework/nn/attention.h"
#include "framework/ops/arithmetic.h"
#include "framework/train/trainer.h"
#include "models/build.h"
#include "models/parts.h"

using namespace headlab;

namespace {

// --- 1. The operation
// ---------------------------------------------------------------------------------------------------------

// y_j = s k_j + (1 − s) k_{j−1}, where s = σ(a_h) for the columns of head h and k_{−1} = k_0.
// keys [B, T, heads·d], logits [heads].
template <class T>
Array smear(const Array& keys, const Array& logits, std::int64_t heads) {
  Array out(keys.shape(), keys.dtype());
  const std::int64_t tokens = keys.dim(1), width = keys.dim(2), d = width / heads;
  for (std::int64_t row = 0; row < keys.dim(0) * tokens; ++row) {
    const T* here = keys.data<T>() + row * width;
    const T* before = row % tokens == 0 ? here : here - width;
    for (std::int64_t c = 0; c < width; ++c) {
      const T s = 1 / (1 + std::exp(-logits.data<T>()[c / d]));
      out.data<T>()[row * width + c] = s * here[c] + (1 - s) * before[c];
    }
  }
  return out;
}

// With g = ∂L/∂y:  ∂L/∂k_j = s g_j + (1 − s) g_{j+1} (and k_0 stands in for k_{−1}),
//                  ∂L/∂a_h = s (1 − s) Σ g · (k_j − k_{j−1}) over the head's columns.
template <class T>
void smear_backward(const Array& keys, const Array& logits, const Array& g, std::int64_t heads, Array& dkeys,
                    Array& dlogits) {
  const std::int64_t tokens = keys.dim(1), width = keys.dim(2), d = width / heads;
  dkeys.zero();
  dlogits.zero();
  for (std::int64_t row = 0; row < keys.dim(0) * tokens; ++row) {
    const std::int64_t previous = row % tokens == 0 ? row : row - 1;
    for (std::int64_t c = 0; c < width; ++c) {
      const T s = 1 / (1 + std::exp(-logits.data<T>()[c / d]));
      const T gradient = g.data<T>()[row * width + c];
      dkeys.data<T>()[row * width + c] += s * gradient;
      dkeys.data<T>()[previous * width + c] += (1 - s) * gradient;
      const T change = keys.data<T>()[row * width + c] - keys.data<T>()[previous * width + c];
      dlogits.data<T>()[c / d] += s * (1 - s) * gradient * change;
    }
  }
}

Tensor smear_keys(const Tensor& keys, const Tensor& logits) {
  const std::int64_t heads = logits.dim(0);
  check(keys.rank() == 3 && keys.dim(2) % heads == 0, "smear_keys", "keys {} do not fit {} heads",
        keys.shape(), heads);
  return dispatch(keys.dtype(), "smear_keys", [&](auto zero) {
    using T = decltype(zero);
    return record(
        "smear_keys", smear<T>(keys.value(), logits.value(), heads), {keys, logits},
        [k = Saved(keys, "smear_keys"), a = Saved(logits, "smear_keys"), heads](const Array& g, Sinks d) {
          Array dkeys(k.get().shape(), g.dtype());
          Array dlogits(a.get().shape(), g.dtype());
          smear_backward<T>(k.get(), a.get(), g, heads, dkeys, dlogits);
          if (d[0]) d[0].add(std::move(dkeys));
          if (d[1]) d[1].add(std::move(dlogits));
        });
  });
}

// --- 2. The layer: its parameters are named in the lines that declare them, and the laboratory can look at
// its heads --------------

class SmearedAttention : public Module, public HeadLayer {
 public:
  explicit SmearedAttention(const Needs& n)
      : HeadLayer(this),
        heads_(n.heads),
        d_(n.d_model / n.heads),
        base_(n.rotary_base),
        q(this, "q", projection(n)),
        k(this, "k", projection(n)),
        v(this, "v", projection(n)),
        out(this, "out", projection(n)),
        share(this, "share", Shape{n.heads}, Init::zeros(), Role::bias) {}

  Tensor operator()(const Tensor& x) {
    const Tensor queries = turned(q(x));
    const Tensor keys = turned(smear_keys(k(x), share));
    const Tensor values = v(x);
    AttentionResult a = attention(
        queries, keys, values, {.heads = heads_, .mask = Mask::causal(), .telemetry = telemetry_options()});
    set_telemetry(std::move(a.telemetry));
    const Tensor z = sites.z(a.out);
    return out(gate() ? head_gate(z, gate(), heads_) : z);
  }

  std::int64_t heads() const override { return heads_; }
  std::int64_t head_size() const override { return d_; }
  Module& module() override { return *this; }
  bool cross() const override { return false; }

 private:
  static Linear::Options projection(const Needs& n) {
    return {.in = n.d_model, .out = n.d_model, .bias = false, .weights = matrix_init(n, false)};
  }
  Tensor turned(const Tensor& x) const {
    return rotary(x, {.heads = heads_, .head_size = d_, .base = base_});
  }
  std::int64_t heads_, d_;
  double base_;

 public:
  Child<Linear> q, k, v, out;
  Parameter share;
};

// --- 3. A model with that layer, from the same parts as headlab's own
// -----------------------------------------------------------------

class SmearedDecoder : public Model {
 public:
  explicit SmearedDecoder(const Needs& n)
      : Model(n),
        embed(this, "embed",
              InputEmbedding::Options{.streams = n.streams,
                                      .context = n.context,
                                      .d_model = n.d_model,
                                      .learned_positions = false}),
        norm(this, "norm", LayerNorm::Options{.d_model = n.d_model, .bias = n.norm_bias}),
        attn(this, "attn", n),
        readout(this, "readout", n) {}
  Tensor logits(const Batch& batch) override {
    const Tensor x = embed(batch.inputs);
    const Tensor change = attn(norm(x));
    return readout(add(x, change), Tensor());
  }
  Child<InputEmbedding> embed;
  Child<LayerNorm> norm;
  Child<SmearedAttention> attn;
  Child<Readout> readout;
};

double accuracy_of(Model& model, const InductionTask& task) {
  RunConfig config{.task = task.name(), .needs = model.needs(), .recipe = task.recipe(), .seed = 0};
  config.recipe.steps = 200;
  return train(model, task, config).evaluation.accuracy;
}

// --- 4. The layer under its own name in the command's catalogue
// -----------------------------------------------------------------

KnownLayer smeared_layer() {
  Needs needs = InductionTask().needs();
  needs.d_model = 12;
  needs.heads = 3;
  return known_layer<SmearedAttention>(
      "smeared", "attention with smeared keys", needs, {{{2, 5, 12}}},
      [](SmearedAttention& layer, std::span<const Tensor> x) { return layer(x[0]); });
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1) {
    Catalogue catalogue;
    catalogue.add(smeared_layer());
    return run_command(argc, argv, catalogue);
  }
  const InductionTask task;
  Needs needs = task.needs();
  needs.layers = 1;
  const std::unique_ptr<Model> plain = build_model(needs);
  SmearedDecoder smeared(needs);
  fmt::print("one layer on induction after 200 steps, share of right answers:\n");
  fmt::print("  plain keys    {:.3f}\n", accuracy_of(*plain, task));
  fmt::print("  smeared keys  {:.3f}\n", accuracy_of(smeared, task));
  const Array& a = smeared.attn->share.tensor().value();
  for (std::int64_t h = 0; h < a.size(); ++h) {
    fmt::print("  head {}: {:.2f} of the key is the token itself, the rest the one before\n", h,
               1 / (1 + std::exp(-a.at(h))));
  }
  return 0;
}
