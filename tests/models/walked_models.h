// One model of every kind, for tests that walk through all of them.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "framework/data/glyphs.h"
#include "framework/data/reverse.h"
#include "framework/heads/head_sites.h"
#include "framework/nn/attention.h"
#include "models/build.h"
#include "tests/support/random_array.h"

namespace headlab {

struct Walked {
  std::string name;
  std::unique_ptr<Module> model;
  std::function<Tensor()> run;
  std::function<Mask(HeadLayer&)> mask;
};

inline Walked of_model(const std::string& name, const Needs& needs, const Batch& batch) {
  auto model = build_model(needs);
  Model& m = *model;
  initialise(m, 7);
  return {name, std::move(model), [&m, batch] { return m.logits(batch); },
          [&m, batch](HeadLayer& layer) { return mask_of(site_of(layer, m.needs()), m.needs(), batch); }};
}

inline Needs decoder_needs(Needs::Positions positions) {
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
  return needs;
}

inline Walked decoder(const std::string& name, const Needs& needs, const Array& valid = {}) {
  Batch batch;
  batch.inputs = {Array::of<std::int64_t>({2, 5}, {1, 5, 2, 6, 0, 3, 3, 4, 1, 2})};
  batch.valid = valid;
  return of_model(name, needs, batch);
}

/// Both ways, with padding.
inline Walked encoder() {
  Needs needs = decoder_needs(Needs::Positions::learned);
  needs.causal = false;
  return decoder("encoder with padding", needs,
                 Array::of<std::uint8_t>({2, 5}, {1, 1, 1, 1, 1, 0, 1, 1, 1, 0}));
}

inline Walked vision() {
  const GlyphsTask task;
  Needs needs = task.needs();
  needs.d_model = 12;
  needs.heads = 3;
  Batch batch = task.batch(1, 0, 2);
  batch.inputs[0] = batch.inputs[0].to(DefaultDType::now());
  return of_model("vision, class token", needs, batch);
}

inline Walked encoder_decoder(const std::string& name, Needs::Positions positions) {
  const ReverseTask task;
  Needs needs = task.needs();
  needs.d_model = 12;
  needs.heads = 3;
  needs.positions = positions;
  return of_model(name, needs, task.batch(1, 0, 3));
}

/// One layer with everything that a layer can have.
inline Walked layer(const std::string& name, const MultiHeadAttention::Options& options) {
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

inline std::vector<Walked> all_models() {
  std::vector<Walked> all;
  all.push_back(decoder("decoder without positions", decoder_needs(Needs::Positions::none)));
  all.push_back(decoder("decoder, learned positions", decoder_needs(Needs::Positions::learned)));
  all.push_back(decoder("decoder, rotary positions", decoder_needs(Needs::Positions::rotary)));
  all.push_back(decoder("decoder, relative positions", decoder_needs(Needs::Positions::relative)));
  Needs smeared = decoder_needs(Needs::Positions::learned);
  smeared.smeared_keys = true;
  all.push_back(decoder("decoder, smeared keys", smeared));
  all.push_back(encoder());
  all.push_back(vision());
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

}  // namespace headlab
