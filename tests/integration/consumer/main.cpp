// A program outside headlab's tree, built against the installed package: one layer, one backward.
#include <cstdio>

#include "framework/autograd/backward.h"
#include "framework/nn/attention.h"
#include "framework/ops/reduction.h"

int main() {
  headlab::MultiHeadAttention attention({.d_model = 8, .heads = 2});
  headlab::initialise(attention, 1);
  const headlab::Tensor x(headlab::Array::full({1, 3, 8}, 0.5), true);
  const headlab::Tensor loss = headlab::sum(attention(x, {.mask = headlab::Mask::causal()}).out);
  headlab::backward(loss);
  std::printf("loss %.6f, gradient of shape %s\n", loss.item(), x.grad().shape().str().c_str());
  return x.grad().shape() == x.shape() ? 0 : 1;
}
