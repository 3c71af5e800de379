// The transformer of Vaswani et al. 2017, pre-norm: an encoder reads the source, a causal decoder attends to
// it.
#pragma once

#include "framework/train/model.h"
#include "framework/train/staged.h"
#include "models/parts.h"

namespace headlab {

class EncoderDecoder : public Model, public Staged {
 public:
  /// Errors: needs of another architecture; not exactly two streams; sizes that the layers refuse.
  explicit EncoderDecoder(const Needs& needs);
  Tensor logits(const Batch& batch) override;

  /// source i64 [B, S], valid u8 [B, S] (1 = a real token) or absent → memory [B, S, d_model].
  Tensor encode(const Array& source, const Array& valid);
  /// tokens i64 [B, T] → [B, T, logits].
  Tensor decode(const Array& tokens, const Tensor& memory, const Array& valid);

  /// Two a block of the encoder and three a block of the decoder, which has two places with contexts.
  std::int64_t stages() const override { return 5 * needs().layers; }
  std::int64_t stage_of(const HeadLayer& layer) override;
  State begin(const Batch& batch) override;
  State run_stage(std::int64_t stage, const Batch& batch, State state, std::int64_t first) override;
  Tensor read_out(const Tensor& x) override { return readout(x, target->last_table().weight); }

  Child<InputEmbedding> source;
  ModuleList<TransformerBlock> encoder;
  Child<LayerNorm> encoder_norm;
  Child<InputEmbedding> target;
  ModuleList<TransformerBlock> decoder;
  Child<Readout> readout;
};

}  // namespace headlab
