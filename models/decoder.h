// A decoder of GPT's shape: embeddings, pre-norm blocks with self attention, final norm, read-out.
#pragma once

#include "framework/train/model.h"
#include "framework/train/staged.h"
#include "models/parts.h"

namespace headlab {

class Decoder : public Model, public Staged {
 public:
  /// Errors: needs of another architecture; sizes that the layers refuse; a tied read-out of another width
  /// than the table.
  explicit Decoder(const Needs& needs);
  Tensor logits(const Batch& batch) override;
  /// Causal ones without smeared keys or patches only.
  Tensor next_logits(const Batch& more, TextCache& cache) override;
  bool continues() const override {
    return needs().causal && !needs().smeared_keys && !needs().pooled && needs().patch_width == 0;
  }
  /// With one read-out of as many classes as the last stream has tokens.
  std::optional<TokenMaps> token_maps() override;
  /// One i64 array [B, T] a stream, or patches → [B, T, logits]. valid: u8 [B, T], keys that are real.
  Tensor operator()(std::span<const Array> streams, const Array& valid = {});

  /// Two a block: up to the contexts, and the rest.
  std::int64_t stages() const override { return 2 * needs().layers; }
  std::int64_t stage_of(const HeadLayer& layer) override;
  State begin(const Batch& batch) override;
  State run_stage(std::int64_t stage, const Batch& batch, State state, std::int64_t first) override;
  Tensor read_out(const Tensor& x) override;

  Child<InputEmbedding> embed;
  ModuleList<TransformerBlock> blocks;
  Child<Readout> readout;

 private:
  Mask mask_of(const Array& valid) const;
  Tensor pooled(const Tensor& x) const;
  Tensor run(std::span<const Array> streams, const Array& valid, TextCache* cache);
};

}  // namespace headlab
