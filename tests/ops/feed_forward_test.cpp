#include "framework/ops/feed_forward.h"

#include "framework/autograd/gradcheck.h"
#include "framework/core/random.h"
#include "tests/support/ops.h"

namespace headlab {
namespace {

using In = std::span<const Tensor>;
using Network = Tensor (*)(const Tensor&, const FeedForwardWeights&);
struct Pair {
  Network fused, by_definition;
};
const std::vector<Pair> pairs{{feed_forward_gelu, composite::feed_forward_gelu},
                              {feed_forward_gelu_exact, composite::feed_forward_gelu_exact}};

FeedForwardWeights weights_of(In t) { return {t[1], t[2], t[3], t[4]}; }

// x, up, its bias, down, its bias.
std::vector<Array> random_inputs(const Shape& x, std::int64_t hidden, std::int64_t out, std::uint64_t seed) {
  const std::int64_t in = x[x.rank() - 1];
  const std::vector<Shape> shapes{x, {hidden, in}, {hidden}, {out, hidden}, {out}};
  std::vector<Array> arrays;
  for (std::size_t i = 0; i < shapes.size(); ++i) arrays.push_back(random_array(shapes[i], seed + i));
  return arrays;
}

// The result and all gradients.
std::vector<Array> run(Network network, const std::vector<Array>& arrays, const std::vector<bool>& wanted) {
  std::vector<Tensor> t;
  for (std::size_t i = 0; i < arrays.size(); ++i) t.emplace_back(arrays[i], wanted[i]);
  const Tensor y = network(t[0], weights_of(t));
  std::vector<Array> results{y.value()};
  if (!y.requires_grad()) return results;
  backward(y, {.seed = random_array(y.shape(), 99).to(y.dtype())});
  for (const Tensor& tensor : t) {
    if (tensor.has_grad()) results.push_back(tensor.grad());
  }
  return results;
}

TEST(FeedForward, GradientsForEverySize) {
  for (const Pair& pair : pairs) {
    for (const Shape& shape : {Shape{5}, Shape{2, 3, 5}, Shape{0, 5}, Shape{3, 0}, Shape{1, 1}}) {
      for (const std::int64_t hidden : {0, 1, 7}) {
        std::vector<Tensor> inputs;
        for (const Array& array : random_inputs(shape, hidden, 3, 1)) inputs.emplace_back(array, true);
        const auto result = gradcheck([&](In t) { return pair.fused(t[0], weights_of(t)); }, inputs);
        EXPECT_TRUE(result) << shape.str() << " by " << hidden << ": " << result.message;
        EXPECT_TRUE(gradcheck(
            [&](In t) {
              return pair.fused(t[0], {.up = t[1], .up_bias = {}, .down = t[2], .down_bias = {}});
            },
            {inputs[0], inputs[1], inputs[3]}));
      }
    }
  }
}

TEST(FeedForward, HasTheBitsOfItsDefinition) {
  Random random(3, Stream::evaluation);
  for (int trial = 0; trial < 40; ++trial) {
    const auto size = [&](std::int64_t most) { return random.below(most + 1); };
    const Shape shape{size(3), size(37), size(trial % 2 == 0 ? 31 : 300)};
    std::vector<Array> arrays;
    for (const Array& array : random_inputs(shape, size(149), size(23), static_cast<std::uint64_t>(trial)))
      arrays.push_back(trial % 3 == 0 ? array : array.to(DType::f32));
    std::vector<bool> wanted;
    for (int i = 0; i < 5; ++i) wanted.push_back(trial % 4 == 0 || random.below(2) == 1);
    for (const Pair& pair : pairs) {
      const std::vector<Array> got = run(pair.fused, arrays, wanted);
      const std::vector<Array> want = run(pair.by_definition, arrays, wanted);
      ASSERT_EQ(got.size(), want.size());
      for (std::size_t i = 0; i < got.size(); ++i)
        EXPECT_TRUE(same_bits(got[i], want[i])) << "trial " << trial << ", array " << i;
    }
  }
}

TEST(FeedForward, SharedTensors) {
  const Tensor square(random_array({5, 5}, 4), true);
  const Tensor row(random_array({5}, 5), true);
  for (const Pair& pair : pairs) {
    const auto all_the_same = [&](Network network) {
      return [network](In t) { return network(t[0], {t[0], t[1], t[0], t[1]}); };
    };
    EXPECT_TRUE(gradcheck(all_the_same(pair.fused), {square, row}));
    const auto once = [&](Network network) {
      const Tensor x(square.value().to(DType::f32), true);
      const Tensor b(row.value().to(DType::f32), true);
      const Tensor y = network(x, {x, b, x, b});
      backward(y, {.seed = random_array({5, 5}, 6).to(DType::f32)});
      return std::vector<Array>{y.value(), x.grad(), b.grad()};
    };
    const std::vector<Array> got = once(pair.fused), want = once(pair.by_definition);
    for (std::size_t i = 0; i < got.size(); ++i) EXPECT_TRUE(same_bits(got[i], want[i])) << i;
  }
}

TEST(FeedForward, MayRunBackwardTwice) {
  std::vector<Tensor> t;
  for (const Array& array : random_inputs({3, 5}, 7, 2, 7)) t.emplace_back(array, true);
  const Tensor y = feed_forward_gelu(t[0], weights_of(t));
  const Array seed = Array::full({3, 2}, 1, DType::f64);
  backward(y, {.seed = seed, .keep_graph = true});
  const Array first = t[0].grad().copy();
  t[0].clear_grad();
  backward(y, {.seed = seed});
  EXPECT_TRUE(same_bits(t[0].grad(), first));
}

TEST(FeedForward, ErrorsNameShapes) {
  const Tensor x = Tensor::zeros({2, 5});
  const Tensor up = Tensor::zeros({7, 5});
  EXPECT_EQ(error_of([&] {
              feed_forward_gelu(x, {Tensor::zeros({7, 3}), {}, Tensor::zeros({5, 7}), {}});
            }),
            "linear: x of shape [2, 5] and weight of shape [7, 3]: x needs a last axis of 3");
  EXPECT_EQ(error_of([&] {
              feed_forward_gelu(x, {up, {}, Tensor::zeros({5, 6}), {}});
            }),
            "linear: x of shape [2, 7] and weight of shape [5, 6]: x needs a last axis of 6");
  EXPECT_EQ(error_of([&] {
              feed_forward_gelu(x, {up, {}, Tensor::zeros({5, 7}), Tensor::zeros({7})});
            }),
            "linear: bias of shape [7] and weight of shape [5, 7]: bias needs [5]");
}

TEST(FeedForward, SameBitsForAnyNumberOfThreads) {
  std::vector<Array> arrays;
  for (const Array& array : random_inputs({331, 67}, 149, 61, 8)) arrays.push_back(array.to(DType::f32));
  expect_same_bits_for_any_threads([&] {
    return run(feed_forward_gelu, arrays, {true, true, true, true, true});
  });
}

}  // namespace
}  // namespace headlab
