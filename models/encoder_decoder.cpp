#include "models/encoder_decoder.h"

namespace headlab {

namespace {

const Needs& checked(const Needs& needs) {
  check(needs.architecture == Architecture::encoder_decoder, "EncoderDecoder",
        "the needs are those of a decoder");
  check(needs.streams.size() == 2, "EncoderDecoder", "needs two streams, source and target, not {}",
        needs.streams.size());
  check(!needs.pooled, "EncoderDecoder", "pooling is for models of one stack");
  check(needs.layers >= 1, "EncoderDecoder", "layers {} must be at least 1", needs.layers);
  check_layer_heads(needs, 3 * needs.layers, "EncoderDecoder");
  check(!needs.tied_readout || needs.streams[1].vocabulary == needs.logits(), "EncoderDecoder",
        "a tied read-out needs as many classes as the target has tokens, not {}", needs.logits());
  return needs;
}

InputEmbedding::Options side(const Needs& n, std::size_t stream, std::int64_t context) {
  return {.streams = {n.streams[stream]},
          .context = context,
          .d_model = n.d_model,
          .learned_positions = n.positions == Needs::Positions::learned,
          .position_std = n.position_std};
}

Mask of_valid(const Array& valid) { return valid ? Mask::valid_keys(valid) : Mask(); }

}  // namespace

EncoderDecoder::EncoderDecoder(const Needs& n)
    : Model(checked(n)),
      source(this, "source", side(n, 0, n.source_context)),
      encoder(this, "encoder"),
      encoder_norm(this, "encoder_norm",
                   LayerNorm::Options{.d_model = n.d_model, .bias = n.norm_bias, .epsilon = n.norm_epsilon}),
      target(this, "target", side(n, 1, n.context)),
      decoder(this, "decoder"),
      readout(this, "readout", n) {
  for (std::int64_t i = 0; i < n.layers; ++i) encoder.add(block_options(n, Stack::encoder, i));
  for (std::int64_t i = 0; i < n.layers; ++i) decoder.add(block_options(n, Stack::decoder_with_cross, i));
}

Tensor EncoderDecoder::encode(const Array& tokens, const Array& valid) {
  Tensor x = source(std::span(&tokens, 1));
  const Mask mask = of_valid(valid);
  for (auto& block : encoder) x = (*block)(x, mask);
  return encoder_norm(x);
}

Tensor EncoderDecoder::decode(const Array& tokens, const Tensor& memory, const Array& valid) {
  Tensor x = target(std::span(&tokens, 1));
  for (auto& block : decoder) x = (*block)(x, Mask::causal(), {.value = memory, .mask = of_valid(valid)});
  return readout(x, target->last_table().weight);
}

Tensor EncoderDecoder::logits(const Batch& batch) {
  check(batch.inputs.size() == 2, "EncoderDecoder", "a batch has {} inputs, needs source and target",
        batch.inputs.size());
  const Tensor memory = encode(batch.inputs[0], batch.source_valid);
  return decode(batch.inputs[1], memory, batch.source_valid);
}

std::int64_t EncoderDecoder::stage_of(const HeadLayer& layer) {
  const std::int64_t layers = needs().layers;
  for (std::int64_t i = 0; i < layers; ++i) {
    const auto index = static_cast<std::size_t>(i);
    if (&*encoder[index].attn == &layer) return 2 * i;
    if (&*decoder[index].attn == &layer) return 2 * layers + 3 * i;
    if (&**decoder[index].cross == &layer) return 2 * layers + 3 * i + 1;
  }
  fail("EncoderDecoder", "a layer of another model");
}

Staged::State EncoderDecoder::begin(const Batch& batch) {
  check(batch.inputs.size() == 2, "EncoderDecoder", "a batch has {} inputs, needs source and target",
        batch.inputs.size());
  return {source(std::span(batch.inputs.data(), 1))};
}

// All positions stay: scored ones begin with the first. In the encoder {contexts, x} and {x}; in the decoder
// {memory, contexts, y} and {memory, y}.
Staged::State EncoderDecoder::run_stage(std::int64_t stage, const Batch& batch, State state, std::int64_t) {
  const std::int64_t encoding = 2 * needs().layers;
  const Tensor x = state.back();
  if (stage < encoding) {
    TransformerBlock& block = encoder[static_cast<std::size_t>(stage / 2)];
    if (stage % 2 == 0) {
      const Tensor z = block.attend(x, of_valid(batch.source_valid));
      return {z, x};
    }
    const Tensor y = block.feed(block.after_attention(x, state.front()));
    if (stage + 1 < encoding) return {y};
    const Tensor memory = encoder_norm(y);
    return {memory, target(std::span(batch.inputs).subspan(1, 1))};
  }
  TransformerBlock& block = decoder[static_cast<std::size_t>((stage - encoding) / 3)];
  const TransformerBlock::Memory memory{.value = state[0], .mask = of_valid(batch.source_valid)};
  if ((stage - encoding) % 3 == 0) {
    const Tensor z = block.attend(x, Mask::causal());
    return {memory.value, z, x};
  }
  if ((stage - encoding) % 3 == 1) {
    const Tensor y = block.after_attention(x, state[1]);
    const Tensor z = block.attend_cross(y, memory);
    return {memory.value, z, y};
  }
  return {memory.value, block.feed(block.after_cross(x, state[1]))};
}

}  // namespace headlab
