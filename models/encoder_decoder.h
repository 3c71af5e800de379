// The transformer of Vaswani et al. 2017, pre-norm: an encoder reads the source, a causal decoder attends to
// it.
#pragma once

#include "framework/train/model.h"
#include "models/parts.h"

namespace headlab {

class EncoderDecoder : public Model {
 public:
  /// Errors: needs of another architecture; not exactly two streams; sizes that the layers refuse.
  explicit EncoderDecoder(const Needs& needs);
  Tensor logits(const Batch& batch) override;

  /// source i64 [B, S], valid u8 [B, S] (1 = a real token) or absent → memory [B, S, d_model].
  Tensor encode(const Array& source, const Array& valid);
  /// tokens i64 [B, T] → [B, T, logits].
  Tensor decode(const Array& tokens, const Tensor& memory, const Array& valid);

  Child<InputEmbedding> source;
  ModuleList<TransformerBlock> encoder;
  Child<LayerNorm> encoder_norm;
  Child<InputEmbedding> target;
  ModuleList<TransformerBlock> decoder;
  Child<Readout> readout;
};

}  // namespace headlab
