#include "framework/data/needs.h"

#include <algorithm>
#include <cmath>

namespace headlab {

std::int64_t Needs::logits() const {
  std::int64_t sum = 0;
  for (const Readout& readout : readouts) sum += readout.classes;
  return sum;
}

double Needs::parameters() const {
  const auto real = [](std::int64_t n) { return static_cast<double>(n); };
  const double d = real(d_model);
  const double inner = head_size > 0 ? real(head_size) * real(heads) : d;
  const double attention = 4 * d * inner + (attention_bias ? 3 * inner + d : 0);
  double self = 0;  // what self attention has beside
  if (positions == Positions::relative) {
    const auto rows = [&](std::int64_t reach, bool one_side) {
      return real(one_side ? reach : 2 * reach - 1);
    };
    const bool encoder_decoder = architecture == Architecture::encoder_decoder;
    self += rows(context, causal || encoder_decoder) * inner;
    if (encoder_decoder) self += rows(source_context, false) * inner;
  }
  if (smeared_keys) self += real(heads) * (architecture == Architecture::encoder_decoder ? 2 : 1);
  const double norm = norm_bias ? 2 * d : d;
  const double hidden = real(mlp);
  const double feed_forward = mlp > 0 ? 2 * d * hidden + (mlp_bias ? hidden + d : 0) + norm : 0;
  const double block = attention + norm + feed_forward;
  const bool encoder = architecture == Architecture::encoder_decoder;

  double sum = real(layers) * block + norm;
  if (encoder) sum += real(layers) * (block + attention + norm) + norm;
  sum += real(layers) * self;
  if (patch_width > 0) sum += real(patch_width + 1) * d;
  if (class_token) sum += d;
  for (const Tokens& tokens : streams) sum += real(tokens.vocabulary) * d;
  if (positions == Positions::learned) sum += real(context + source_context) * d;
  if (!tied_readout) sum += real(logits()) * (d + (readout_bias ? 1 : 0));
  return sum;
}

void set_d_model(Needs& needs, std::int64_t d_model) {
  const double share = static_cast<double>(needs.mlp) / static_cast<double>(needs.d_model);
  if (needs.mlp > 0) {
    needs.mlp = std::max<std::int64_t>(1, std::llround(share * static_cast<double>(d_model)));
  }
  needs.d_model = d_model;
}

}  // namespace headlab
