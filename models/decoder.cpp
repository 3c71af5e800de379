#include "models/decoder.h"

#include "framework/ops/reduction.h"
#include "framework/ops/shaping.h"

namespace headlab {

namespace {
const Needs& checked(const Needs& needs) {
  check(needs.architecture == Architecture::decoder, "Decoder", "the needs are those of an encoder–decoder");
  check(needs.layers >= 1, "Decoder", "layers {} must be at least 1", needs.layers);
  check_layer_heads(needs, needs.layers, "Decoder");
  check(!needs.tied_readout || (!needs.streams.empty() && needs.streams.back().vocabulary == needs.logits()),
        "Decoder", "a tied read-out needs as many classes as the last stream has tokens, not {}",
        needs.logits());
  return needs;
}
}  // namespace

Decoder::Decoder(const Needs& n)
    : Model(checked(n)),
      embed(this, "embed",
            InputEmbedding::Options{.streams = n.streams,
                                    .context = n.context,
                                    .d_model = n.d_model,
                                    .learned_positions = n.positions == Needs::Positions::learned,
                                    .position_std = n.position_std,
                                    .patch_width = n.patch_width,
                                    .patch_weights = matrix_init(n, false),
                                    .class_token = n.class_token,
                                    .class_std = n.class_std}),
      blocks(this, "blocks"),
      readout(this, "readout", n) {
  for (std::int64_t i = 0; i < n.layers; ++i) blocks.add(block_options(n, Stack::decoder, i));
}

Tensor Decoder::operator()(std::span<const Array> streams, const Array& valid) {
  return run(streams, valid, nullptr);
}

Mask Decoder::mask_of(const Array& valid) const {
  const Mask mask = needs().causal ? Mask::causal() : Mask();
  return valid ? mask & Mask::valid_keys(valid) : mask;
}

Tensor Decoder::read_out(const Tensor& x) {
  return readout(x, needs().tied_readout ? embed->last_table().weight.tensor() : Tensor());
}

Tensor Decoder::pooled(const Tensor& x) const {
  if (!needs().pooled) return x;
  const Tensor middle = reshape(mean(x, {1}), {x.dim(0), 1, x.dim(2)});
  const Tensor rest = slice(x, 1, 1, x.dim(1));
  return concat({middle, rest}, 1);
}

Tensor Decoder::run(std::span<const Array> streams, const Array& valid, TextCache* cache) {
  const Mask mask = mask_of(valid);
  Tensor x = embed(streams, cache ? cache->length() : 0);  // [B, T, d_model]
  for (std::size_t i = 0; i < blocks.size(); ++i)
    x = blocks[i](x, mask, {}, cache ? &cache->layers[i] : nullptr);
  return read_out(pooled(x));
}

Tensor Decoder::next_logits(const Batch& more, TextCache& cache) {
  check(continues(), "Decoder", "only a causal one can go on from a cache");
  if (cache.layers.empty()) cache.layers.resize(blocks.size());
  check(cache.layers.size() == blocks.size(), "Decoder", "a cache of {} layers for a model of {}",
        cache.layers.size(), blocks.size());
  for (const KeyValueCache& layer : cache.layers) {
    check(layer.length() == cache.length(), "Decoder",
          "the cache's layers hold {} and {} tokens, which an error has left behind; clear it",
          cache.length(), layer.length());
  }
  check(!more.valid, "Decoder", "padding cannot go on from a cache");
  return run(more.inputs, {}, &cache);
}

std::optional<Model::TokenMaps> Decoder::token_maps() {
  if (needs().streams.empty() || needs().readouts.size() != 1) return {};
  if (needs().logits() != needs().streams.back().vocabulary) return {};
  const Array table = embed->last_table().weight.tensor().value();
  return TokenMaps{table, readout->linear ? (*readout->linear)->weight.tensor().value() : table};
}

std::int64_t Decoder::stage_of(const HeadLayer& layer) {
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    if (&*blocks[i].attn == &layer) return 2 * static_cast<std::int64_t>(i);
  }
  fail("Decoder", "a layer of another model");
}

Staged::State Decoder::begin(const Batch& batch) { return {embed(batch.inputs)}; }

// In the last layer positions that are not read out are keys and values alone.
Staged::State Decoder::run_stage(std::int64_t stage, const Batch& batch, State state, std::int64_t first) {
  TransformerBlock& block = blocks[static_cast<std::size_t>(stage / 2)];
  const Tensor x = state.back();
  if (stage % 2 == 0) {
    const std::int64_t from = stage + 2 == stages() && !needs().pooled ? first : 0;
    const Tensor z = block.attend(x, mask_of(batch.valid), from);
    return {z, from > 0 ? slice(x, 1, from, x.dim(1)) : x};
  }
  const Tensor y = block.feed(block.after_attention(x, state.front()));
  return {stage + 1 == stages() ? pooled(y) : y};
}

Tensor Decoder::logits(const Batch& batch) { return (*this)(batch.inputs, batch.valid); }

}  // namespace headlab
