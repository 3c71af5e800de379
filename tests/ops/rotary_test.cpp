#include "framework/ops/rotary.h"

#include "framework/autograd/gradcheck.h"
#include "framework/ops/arithmetic.h"
#include "framework/ops/reduction.h"
#include "tests/support/attention.h"

namespace headlab {
namespace {

TEST(Rotary, TurnsPairsByPosition) {
  const Tensor x = Tensor::of<double>({1, 2, 4}, {1, 2, 3, 4, 1, 2, 3, 4}, true);
  const auto row = [&](RotaryPairing pairing, std::int64_t position) {
    return rotary(x, {.heads = 1, .head_size = 4, .pairing = pairing})
        .value()
        .range(0, 1)
        .reshape({2, 4})
        .range(position, position + 1);
  };
  expect_close(row(RotaryPairing::neighbours, 1),
               Array::of<double>({1, 4}, {-1.142640, 1.922076, 2.959851, 4.029800}), 1e-6);
  expect_close(row(RotaryPairing::halves, 1),
               Array::of<double>({1, 4}, {-1.984111, 1.959901, 2.462378, 4.019800}), 1e-6);
  for (const auto pairing : {RotaryPairing::neighbours, RotaryPairing::halves}) {
    expect_close(row(pairing, 0), Array::of<double>({1, 4}, {1, 2, 3, 4}), 0);
    EXPECT_TRUE(gradcheck(
        [&](std::span<const Tensor> in) {
          return rotary(in[0], {.heads = 1, .head_size = 4, .pairing = pairing});
        },
        {x}));
    // q turned to m times k turned to n depends on m − n alone.
    const auto product = [&](std::int64_t m, std::int64_t n) {
      const Tensor q = Tensor::of<double>({1, 1, 4}, {1, 0, 2, 1});
      const Tensor k = Tensor::of<double>({1, 1, 4}, {2, 1, 0, 1});
      const Tensor a = rotary(q, {.heads = 1, .head_size = 4, .pairing = pairing, .first_position = m});
      const Tensor b = rotary(k, {.heads = 1, .head_size = 4, .pairing = pairing, .first_position = n});
      return sum(mul(a, b)).item();
    };
    const double want = pairing == RotaryPairing::neighbours ? 1.116801 : -3.489682;
    EXPECT_NEAR(product(2, 0), want, 1e-5);
    EXPECT_NEAR(product(19, 17), want, 1e-5);
  }
  EXPECT_THROW(rotary(x, {.heads = 1, .head_size = 3}), Error);
}

}  // namespace
}  // namespace headlab
