// Reverse-mode differentiation: walks the graph from a result to its leaves.
#pragma once

#include "framework/autograd/tensor.h"

namespace headlab {

struct BackwardOptions {
  Array seed = {};          ///< gradient of the result; absent: 1, which needs a result with one element
  bool keep_graph = false;  ///< keep the graph for another backward; leaf gradients then add up
};

/// Adds d result / d leaf to the gradient of every leaf that asked for one. Each node runs once, after all
/// uses of its outputs have contributed, in descending order of creation; nodes are freed as the walk goes.
/// Constant stack. Errors: the result needs no gradient; no seed for more than one element; the graph was
/// freed by an earlier backward; a value that is needed was changed in place. After an error leaves may hold
/// part of the gradient; no graph memory is lost.
void backward(const Tensor& result, const BackwardOptions& options = {});

}  // namespace headlab
