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
  /// Causal ones without smeared keys or patches only.
  Tensor next_logits(const Batch& more, TextCache& cache) override;
  bool continues() const override {
    return needs().causal && !needs().smeared_keys && needs().patch_width == 0;
  }
  /// One i64 array [B, T] a stream, or patches → [B, T, logits]. valid: u8 [B, T], keys that are real.
  Tensor operator()(std::span<const Array> streams, const Array& valid = {});

  Child<InputEmbedding> embed;
  ModuleList<TransformerBlock> blocks;
  Child<Readout> readout;

 private:
  Tensor run(std::span<const Array> streams, const Array& valid, TextCache* cache);
};

}  // namespace headlab
