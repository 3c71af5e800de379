// Every hook point of every kind of model, on both paths, against the definition by hand.
#include <algorithm>
#include <memory>
#include <set>
#include <vector>

#include "framework/autograd/backward.h"
#include "framework/ops/arithmetic.h"
#include "framework/ops/reduction.h"
#include "framework/ops/shaping.h"
#include "tests/models/walked_models.h"
#include "tests/support/attention.h"

namespace headlab {
namespace {

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

/// scale·q·(k_j + R[δ]), every sum of a key and a vector written out.
Tensor score_with_relative_keys(const MultiHeadAttention& layer, const Tensor& q, const Tensor& k) {
  const MultiHeadAttention::RelativeKeys& r = *layer.options().relative_keys;
  const std::int64_t b = q.dim(0), heads = q.dim(1), n_q = q.dim(2), n_k = k.dim(2), d = q.dim(3);
  const Array& table = layer.relative_keys->tensor().value();  // [distances, heads·d]
  Array vectors({1, heads, n_q, n_k, d}, q.dtype());
  for (std::int64_t at = 0; at < vectors.size(); ++at) {
    const std::int64_t c = at % d, j = at / d % n_k, i = at / d / n_k % n_q, h = at / d / n_k / n_q;
    const std::int64_t distance = std::clamp(j - (i + n_k - n_q), 1 - r.reach, r.reach - 1);
    const double x = table.at(std::min(distance + r.reach - 1, table.dim(0) - 1) * heads * d + h * d + c);
    if (q.dtype() == DType::f64) {
      vectors.data<double>()[at] = x;
    } else {
      vectors.data<float>()[at] = static_cast<float>(x);
    }
  }
  const Tensor keys = add(reshape(k, {b, heads, 1, n_k, d}), Tensor(vectors));
  const Tensor products = sum(mul(reshape(q, {b, heads, n_q, 1, d}), keys), {4});
  return mul(products, layer.options().scale.value_or(1 / std::sqrt(static_cast<double>(d))));
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
    if (o.relative_keys) {
      inside.score = [&](const Tensor& x, const Tensor& y) { return score_with_relative_keys(layer, x, y); };
    }
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
  std::set<std::string> walked;
  for (HeadLayer* head_layer : head_layers(*w.model)) {
    auto& layer = dynamic_cast<MultiHeadAttention&>(head_layer->module());
    const std::string path = layer.path();
    for (const std::string site : {"q", "k", "v", "scores", "pattern", "z", "out"}) {
      SCOPED_TRACE(path + "." + site);
      walked.insert(path + "." + site);
      const bool inside = site == "scores" || site == "pattern" || layer.options().relative_keys;
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
  std::set<std::string> declared;
  for (const NamedHookPoint& named : hook_points(*w.model)) declared.insert(named.path);
  EXPECT_EQ(walked, declared);
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
