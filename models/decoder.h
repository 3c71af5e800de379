// A decoder of GPT's shape: embeddings, pre-norm blocks with self attention, final norm, read-out.
#pragma once

#include "framework/train/model.h"
#include "models/parts.h"

namespace headlab {

class Decoder : public Model {
 public:
  /// Errors: needs of another architecture; sizes that the layers refuse; a tied read-out of another width
  /// than the table.
  explicit Decoder(const Needs& needs);
  Tensor logits(const Batch& batch) override;
  /// Causal ones only.
  Tensor next_logits(const Batch& more, TextCache& cache) override;
  bool continues() const override { return needs().causal; }
  /// One i64 array [B, T] a stream → [B, T, logits].
  Tensor operator()(std::span<const Array> streams);

  Child<InputEmbedding> embed;
  ModuleList<TransformerBlock> blocks;
  Child<Readout> readout;

 private:
  Tensor run(std::span<const Array> streams, TextCache* cache);
};

}  // namespace headlab
