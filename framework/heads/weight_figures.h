// What a head's matrices say without any data: ranks, copying, and how one head feeds another.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "framework/heads/head_sites.h"

namespace headlab {

/// Of W_QK = W_Q W_Kᵀ and W_OV = W_V W_O, from their small factors. Norms, biases and turns by position are
/// left out.
struct WeightFigures {
  /// ‖W‖_F² / ‖W‖₂²: 1 when one direction does everything. 0 for a matrix of zeros.
  double qk_stable_rank = 0, ov_stable_rank = 0;
  /// e^H of the singular values' shares (Roy & Vetterli 2007). 0 for a matrix of zeros.
  double qk_effective_rank = 0, ov_effective_rank = 0;
  /// Re Σλ / Σ|λ| over the eigenvalues of W_E W_V W_O W_U: 1 a head that writes what it reads, −1 one that
  /// writes against it (Elhage et al. 2021). Absent without Model::token_maps() and in cross and encoder
  /// attention.
  std::optional<double> copying;
};

/// Without `copying`. Absent where the layer shows no weights. Error: no such head.
std::optional<WeightFigures> weight_figures(Model& model, HeadId id);
/// Every head, layer by layer; token maps are read once.
std::vector<std::optional<WeightFigures>> all_weight_figures(Model& model);

/// From the d_v × d_v matrix W_O W_U W_E W_V, which has the same eigenvalues but for zeros. 0 for a matrix of
/// zeros.
double copying_score(const HeadWeights& head, const Model::TokenMaps& maps);
/// The copying scores alone, head by head; empty where there is no pair of maps. Only layers of self
/// attention in a decoder are asked.
std::vector<std::optional<double>> copying_scores(Model& model);

/// How much of what one head writes a later head of the same stream reads: ‖A·B‖ / (‖A‖·‖B‖) with Frobenius
/// norms, less its mean over random factors of the same shapes (Elhage et al. 2021).
struct Composition {
  struct Share {
    double above = 0;   ///< what is above that mean; about 0: no more than chance
    double chance = 0;  ///< four standard deviations of 32 random pairs: enough for the best of many pairs
    bool more_than_chance() const { return above > chance; }
  };
  HeadId from, to;
  std::optional<Share> query;  ///< A = W_OV¹, B = W_QK²: what `to` asks
  std::optional<Share> key;    ///< B = W_QK²ᵀ: where `to` looks
  std::optional<Share> value;  ///< B = W_OV²: what `to` passes on
};
/// Every pair whose first head's layer runs before the second's and writes to what it reads: a decoder's
/// heads feed queries of cross attention and everything of later self attention; an encoder's heads feed
/// later encoder layers, and keys and values of cross attention.
std::vector<Composition> compositions(Model& model);

}  // namespace headlab
