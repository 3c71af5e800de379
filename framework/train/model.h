// Model: what a trainer, an evaluation or an inspection needs to know of a network.
#pragma once

#include <optional>

#include "framework/data/batch.h"
#include "framework/data/needs.h"
#include "framework/nn/kv_cache.h"
#include "framework/nn/module.h"

namespace headlab {

class Model : public Module {
 public:
  explicit Model(Needs needs) : needs_(std::move(needs)) {}
  /// [B, T, needs().logits()], the read-outs one after the other. Errors: inputs that do not fit needs().
  virtual Tensor logits(const Batch& batch) = 0;
  /// Logits [B, T, needs().logits()] of tokens that go on behind those of earlier calls with this cache,
  /// which they join: the bits of the last rows of logits() of all of them. Under NoGrad, in evaluation mode.
  /// Errors: as for logits(), counting all tokens; a model that does not continue; a cache that an error has
  /// left unfinished.
  virtual Tensor next_logits(const Batch& more, TextCache& cache);
  /// Where one read-out answers with the tokens that are read last: what a token is written as and read as,
  /// for figures that need no data. A model may have no such pair (the default).
  struct TokenMaps {
    Array embedding;  ///< W_E [V, d_model]
    Array readout;    ///< W_Uᵀ [V, d_model], its row is a token's direction among the logits
  };
  virtual std::optional<TokenMaps> token_maps() { return std::nullopt; }
  /// Whether next_logits() works.
  virtual bool continues() const { return false; }
  /// What it was built from.
  const Needs& needs() const { return needs_; }

 private:
  Needs needs_;
};

}  // namespace headlab
