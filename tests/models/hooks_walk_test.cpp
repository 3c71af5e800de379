// Every hook point of every kind of model, on both paths, against the definition by hand.
#include <memory>
#include <vector>

#include "framework/autograd/backward.h"
#include "framework/data/reverse.h"
#include "framework/heads/head_sites.h"
#include "framework/nn/attention.h"
#include "framework/ops/arithmetic.h"
#include "framework/ops/reduction.h"
#include "models/build.h"
#include "tests/support/attention.h"

namespace headlab {
namespace {

struct Walked {
  std::string name;
  std::unique_ptr<Module> model;
  std::function<Tensor()> run;
  std::function<Mask(HeadLayer&)> mask;
};

Walked of_model(const std::string& name, const Needs& needs, const Batch& batch) {
  auto model = build_model(needs);
  Model& m = *model;
  initialise(m, 7);
  return {name, std::move(model), [&m, batch] { return m.logits(batch); },
          [&m, batch](HeadLayer& layer) { return mask_of(site_of(layer, m.needs()), m.needs(), batch); }};
}

Walked decoder(const std::string& name, Needs::Positions positions) {
  Needs needs;
  needs.streams = {{"token", 7, 1}};
  needs.readouts = {{"next", 7}};
  needs.context = 5;
  needs.layers = 2;
  needs.d_model = 12;
  needs.heads = 3;
  needs.mlp = 13;
  needs.attention_bias = true;
  needs.positions = positions;
  needs.position_std = 1;
  Batch batch;
  batch.inputs = {Array::of<std::int64_t>({2, 5}, {1, 5, 2, 6, 0, 3, 3, 4, 1, 2})};
  return of_model(name, needs, batch);
}

Walked encoder_decoder(const std::string& name, Needs::Positions positions) {
  const ReverseTask task;
  Needs needs = task.needs();
  needs.d_model = 12;
  needs.heads = 3;
  needs.positions = positions;
  return of_model(name, needs, task.batch(1, 0, 3));
}

/// One layer with everything that a layer can have.
Walked layer(const std::string& name, const MultiHeadAttention::Options& options) {
  struct Alone : Module {
    explicit Alone(const MultiHeadAttention::Options& o) : attn(this, "attn", o) {}
    Child<MultiHeadAttention> attn;
  };
  auto model = std::make_unique<Alone>(options);
  Alone& m = *model;
  initialise(m, 7);
  Random random(3, Stream::statistics);
  const Tensor x(random_array(random, {2, 7, options.d_model}, DefaultDType::now()), true);
  return {name, std::move(model), [&m, x] { return (*m.attn)(x, {.mask = Mask::causal()}).out; },
          [](HeadLayer&) { return Mask::causal(); }};
}

std::vector<Walked> all_models() {
  std::vector<Walked> all;
  all.push_back(decoder("decoder without positions", Needs::Positions::none));
  all.push_back(decoder("decoder, learned positions", Needs::Positions::learned));
  all.push_back(decoder("decoder, rotary positions", Needs::Positions::rotary));
  all.push_back(encoder_decoder("encoder–decoder, learned positions", Needs::Positions::learned));
  all.push_back(encoder_decoder("encoder–decoder, rotary positions", Needs::Positions::rotary));
  all.push_back(
      layer("grouped heads, wide values", {.d_model = 11, .heads = 6, .kv_heads = 2, .d_k = 4, .d_v = 7}));
  all.push_back(layer("variants", {.d_model = 12,
                                   .heads = 3,
                                   .kv_heads = 1,
                                   .scale = 0.7,
                                   .rotary = MultiHeadAttention::Rotary{},
                                   .alibi = true,
                                   .qk_norm = MultiHeadAttention::QkNorm::rms,
                                   .softcap = 2,
                                   .sink = true,
                                   .window = 4}));
  all.push_back(layer("no output projection", {.d_model = 12, .heads = 3, .out_proj = false}));
  return all;
}

/// Another factor for every element.
Tensor edited(const Tensor& x) {
  Array factors(x.shape(), DType::f64);
  for (std::int64_t i = 0; i < factors.size(); ++i)
    factors.data<double>()[i] = 1 + 0.5 * std::sin(static_cast<double>(i));
  return mul(x, Tensor(factors.to(x.dtype())));
}

std::vector<std::unique_ptr<Hook>> composite_everywhere(Module& model) {
  std::vector<std::unique_ptr<Hook>> hooks;
  for (const NamedHookPoint& named : hook_points(model)) {
    if (named.point->name() == "pattern")
      hooks.push_back(std::make_unique<Hook>(model, named.path, [](const HookSite&, const Tensor&) {}));
  }
  return hooks;
}

/// The layer from q, k and v on, by the definition, with an edit at one site.
struct ByHand {
  Tensor out;
  Tensor at_site;  ///< the edited value, a leaf

  ByHand(MultiHeadAttention& layer, const std::string& layer_path, const ActivationCache& seen,
         const Mask& mask, const std::string& site) {
    const auto edit_at = [&](const std::string& name, const Tensor& x) {
      if (name != site) return x;
      at_site = Tensor(edited(x).value().copy(), true);
      return at_site;
    };
    const MultiHeadAttention::Options& o = layer.options();
    AttentionOptions options{.heads = o.heads,
                             .kv_heads = o.kv_heads,
                             .scale = o.scale,
                             .softcap = o.softcap,
                             .mask = o.window > 0 ? mask & Mask::window(o.window) : mask};
    const Tensor q = edit_at("q", Tensor(seen[layer_path + ".q"]));
    const Tensor k = edit_at("k", Tensor(seen[layer_path + ".k"]));
    const Tensor v = edit_at("v", Tensor(seen[layer_path + ".v"]));
    if (layer.sink) options.sink = layer.sink->tensor();
    if (o.alibi) options.offset_bias = alibi_bias(o.heads, q.dim(1), k.dim(1), q.dtype());
    composite::AttentionInside inside;
    inside.scores = [&](const Tensor& x) { return edit_at("scores", x); };
    inside.pattern = [&](const Tensor& x) { return edit_at("pattern", x); };
    const Tensor z = edit_at("z", composite::attention(q, k, v, options, inside).out);
    out = edit_at("out", layer.out ? (*layer.out)(z) : z);
  }
};

bool finite_and_nonzero(const Array& x) {
  bool nonzero = false;
  for (std::int64_t i = 0; i < x.size(); ++i) {
    if (!std::isfinite(x.at(i))) return false;
    nonzero = nonzero || x.at(i) != 0;
  }
  return nonzero;
}

void walk(Walked& w, bool composite_path) {
  const auto composite =
      composite_path ? composite_everywhere(*w.model) : std::vector<std::unique_ptr<Hook>>{};
  const Array plain = w.run().value();
  for (HeadLayer* head_layer : head_layers(*w.model)) {
    auto& layer = dynamic_cast<MultiHeadAttention&>(head_layer->module());
    const std::string path = layer.path();
    for (const std::string site : {"q", "k", "v", "scores", "pattern", "z", "out"}) {
      SCOPED_TRACE(path + "." + site);
      const bool inside = site == "scores" || site == "pattern";
      const ActivationCache before(*w.model, {path + ".q", path + ".k", path + ".v"});
      int fired = 0;
      Array gradient, d_out;
      const Hook edit(*w.model, path + "." + site, [&](const HookSite& s, const Tensor& x) {
        ++fired;
        EXPECT_EQ(s.name, path + "." + site);
        return edited(x);
      });
      const ActivationCache after(*w.model, {path + ".out"});
      const GradientHook of_site(*w.model, path + "." + site,
                                 [&](const HookSite&, const Array& d) { gradient = d.copy(); });
      const GradientHook of_out(*w.model, path + ".out",
                                [&](const HookSite&, const Array& d) { d_out = d.copy(); });
      EXPECT_EQ(layer.attention_path() == "streaming", !composite_path && !inside) << layer.attention_path();
      const Tensor logits = w.run();
      EXPECT_EQ(fired, 1);
      EXPECT_FALSE(close(logits.value(), plain, 1e-6)) << "the edit changed nothing";
      const Tensor squares = mul(logits, logits);
      backward(mean(squares));
      ASSERT_TRUE(gradient && d_out);
      EXPECT_TRUE(finite_and_nonzero(gradient));

      const ByHand want(layer, path, before, w.mask(*head_layer), site);
      expect_close(after[path + ".out"], want.out.value(), 1e-11, "out");
      backward(want.out, {.seed = d_out});
      expect_close(gradient, want.at_site.grad(), 1e-11, "gradient at the site");
    }
  }
  EXPECT_TRUE(same_bits(w.run().value(), plain));
}

TEST(HooksWalk, EveryPointFiresEditsAndPassesGradientsAsTheDefinitionSays) {
  const DefaultDType f64(DType::f64);
  for (Walked& w : all_models()) {
    for (const bool composite_path : {false, true}) {
      SCOPED_TRACE(w.name + (composite_path ? ", composite" : ", streaming"));
      walk(w, composite_path);
    }
  }
}

TEST(HooksWalk, PathsAgree) {
  for (Walked& w : all_models()) {
    SCOPED_TRACE(w.name);
    const Array streamed = w.run().value();
    const auto composite = composite_everywhere(*w.model);
    for (HeadLayer* layer : head_layers(*w.model)) {
      EXPECT_EQ(dynamic_cast<MultiHeadAttention&>(layer->module()).attention_path(),
                "composite: a hook reads `pattern`");
    }
    expect_close(w.run().value(), streamed, 1e-6);
  }
}

TEST(HooksWalk, DoublingOneHeadsContextIsAGateOfTwo) {
  for (Walked& w : all_models()) {
    for (HeadLayer* layer : head_layers(*w.model)) {
      SCOPED_TRACE(w.name + ", " + layer->module().path());
      Array gate = Array::full({layer->heads()}, 1);
      gate.data<float>()[1] = 2;
      const Array gated = [&] {
        const GateScope scope(*layer, Tensor(gate));
        return w.run().value();
      }();
      const std::int64_t d = layer->head_size();
      const Hook doubles(layer->module(), "z", [&](const HookSite&, const Tensor& z) {
        Array twice = z.value().copy();
        for (std::int64_t i = 0; i < twice.size(); ++i) {
          if (i / d % layer->heads() == 1) twice.data<float>()[i] *= 2;
        }
        return Tensor(twice);
      });
      EXPECT_TRUE(same_bits(w.run().value(), gated));
    }
  }
}

}  // namespace
}  // namespace headlab
