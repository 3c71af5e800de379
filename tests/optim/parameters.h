// What the tests of optimisers share.
#pragma once

#include <string>
#include <vector>

#include "framework/autograd/backward.h"
#include "framework/optim/parameter_buffer.h"

namespace headlab {

/// A trainable parameter with the given numbers.
template <class T>
OptimisedParameter parameter_of(const std::string& name, const std::vector<T>& values, bool decay = true) {
  return {name, Tensor(Array::of<T>(Shape{static_cast<std::int64_t>(values.size())}, values), true), decay};
}

/// Leaves `gradient` in the tensor, as backward does.
inline void give_gradient(const Tensor& tensor, const Array& gradient) {
  backward(tensor, {.seed = gradient});
}

}  // namespace headlab
