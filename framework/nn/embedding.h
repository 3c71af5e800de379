// A table of vectors looked up by id.
#pragma once

#include "framework/nn/module.h"

namespace headlab {

class Embedding : public Module {
 public:
  struct Options {
    std::int64_t vocabulary = 0;
    std::int64_t d_model = 0;
    Init weights = Init::normal(1);
    Role role = Role::embedding;  ///< or Role::position, which optimisers may treat otherwise
  };
  /// weight [vocabulary, d_model]. Error: a size is not positive.
  explicit Embedding(const Options& options);
  /// ids i64 [...] → [..., d_model]. Error: an id outside 0 … vocabulary − 1.
  Tensor operator()(const Array& ids);

  Parameter weight;
};

}  // namespace headlab
