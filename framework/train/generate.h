// Writing on, token by token.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "framework/train/model.h"
#include "framework/train/sampling.h"

namespace headlab {

struct GenerateOptions {
  SamplingOptions sampling = {};
  std::int64_t tokens = 200;  ///< how many to write
  std::uint64_t seed = 0;
  bool cache =
      true;  ///< keep the keys and values of earlier tokens where the model can: the same text, sooner
};

/// The tokens that a decoder with one stream and one read-out over the same tokens writes behind a prompt.
/// It sees the last Needs::context tokens. Token i is drawn with Random(seed, Stream::sampling, i): the same
/// seed gives the same text. `on_token` is called with each as it comes; false ends the text. In evaluation
/// mode; the model's mode is put back. Errors: another kind of model; an empty prompt; a token out of range;
/// a negative number of tokens; those of sample().
std::vector<std::int64_t> generate(Model& model, std::span<const std::int64_t> prompt,
                                   const GenerateOptions& options = {},
                                   const std::function<bool(std::int64_t)>& on_token = {});

}  // namespace headlab
