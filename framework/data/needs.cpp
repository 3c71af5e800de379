#include "framework/data/needs.h"

#include <algorithm>
#include <cmath>

namespace headlab {

std::int64_t Needs::logits() const {
  std::int64_t sum = 0;
  for (const Readout& readout : readouts) sum += readout.classes;
  return sum;
}

std::int64_t Needs::heads_of(std::int64_t layer) const {
  return layer_heads.empty() ? heads : layer_heads.at(static_cast<std::size_t>(layer));
}

double Needs::parameters() const {
  const auto real = [](std::int64_t n) { return static_cast<double>(n); };
  const double d = real(d_model);
  const bool encoder = architecture == Architecture::encoder_decoder;
  const double norm = norm_bias ? 2 * d : d;
  const double hidden = real(mlp);
  const double feed_forward = mlp > 0 ? 2 * d * hidden + (mlp_bias ? hidden + d : 0) + norm : 0;
  // A layer of attention with its norm; `reach` is what self attention sees, 0 in cross attention.
  const auto attention = [&](double count, std::int64_t reach, bool one_side) {
    const double inner = head_size > 0 ? real(head_size) * count : d;
    double sum = 4 * d * inner + (attention_bias ? 3 * inner + d : 0) + norm;
    if (reach > 0 && smeared_keys) sum += count;
    if (reach > 0 && positions == Positions::relative) sum += real(one_side ? reach : 2 * reach - 1) * inner;
    return sum;
  };
  const bool causal_self = causal || encoder;
  double sum = norm;  // the last one
  if (layer_heads.empty()) {
    const double count = real(heads);
    sum += real(layers) * (attention(count, context, causal_self) + feed_forward);
    if (encoder) {
      sum += norm + real(layers) *
                        (attention(count, source_context, false) + attention(count, 0, true) + feed_forward);
    }
  } else {
    sum += real(layers) * feed_forward * (encoder ? 2 : 1) + (encoder ? norm : 0);
    for (std::size_t i = 0; i < layer_heads.size(); ++i) {
      const std::int64_t at = static_cast<std::int64_t>(i) - (encoder ? layers : 0);
      const double count = real(layer_heads[i]);
      const bool cross = encoder && at >= 0 && at % 2 == 1;
      sum += at < 0 ? attention(count, source_context, false)
                    : attention(count, cross ? 0 : context, causal_self);
    }
  }
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
