#include "framework/ops/embedding.h"

#include "framework/autograd/gradcheck.h"
#include "framework/ops/linear.h"
#include "tests/support/ops.h"

namespace headlab {
namespace {

using In = std::span<const Tensor>;

Array ids_of(Shape shape, const std::vector<std::int64_t>& ids) {
  return Array::of<std::int64_t>(shape, ids);
}

TEST(Embedding, AgreesWithTheGoldens) {
  expect_golden("embedding", [](In in) { return embedding(in[0].value(), in[1]); });
}

TEST(Embedding, GradientsForEverySize) {
  const Array ids = ids_of({2, 3}, {3, 0, 3, 4, 1, 3});
  for (const std::int64_t d : {0, 1, 7}) {
    const Tensor weight(random_array({5, d}, 1), true);
    EXPECT_TRUE(gradcheck([&](In in) { return embedding(ids, in[0]); }, {weight}));
  }
  const Tensor weight(random_array({5, 3}, 2), true);
  for (const Shape& shape : {Shape{0}, Shape{2, 0}}) {
    const Tensor y = embedding(ids_of(shape, {}), weight);
    EXPECT_EQ(y.shape(), shape.inserted(shape.rank(), 3));
    backward(y, {.seed = Array::zeros(y.shape(), DType::f64)});
    EXPECT_EQ(numbers(weight.grad()), std::vector<double>(15, 0));
  }
  EXPECT_EQ(embedding(ids_of({}, {2}), weight).shape(), Shape{3});
}

TEST(Embedding, TiedWithALinearMap) {
  const Array ids = ids_of({3}, {1, 4, 1});
  const auto tied = [&](In in) {
    const Tensor x = embedding(ids, in[0]);
    return linear(x, in[0]);
  };
  EXPECT_TRUE(gradcheck(tied, {Tensor(random_array({5, 3}, 3), true)}));
}

TEST(Embedding, KeepsItsOwnIds) {
  Array ids = ids_of({2}, {1, 1});
  const Tensor weight(random_array({3, 1}, 4), true);
  const Tensor y = embedding(ids, weight);
  ids.fill(2);
  backward(y, {.seed = Array::full({2, 1}, 1, DType::f64)});
  EXPECT_EQ(numbers(weight.grad()), (std::vector<double>{0, 2, 0}));
}

TEST(Embedding, ErrorsNameIdPositionAndVocabulary) {
  const Tensor weight = Tensor::zeros({13, 7});
  EXPECT_EQ(error_of([&] {
              embedding(ids_of({2, 3}, {3, 0, 3, 12, 13, 3}), weight);
            }),
            "embedding: id 13 at position [1, 1] is outside the vocabulary of 13");
  EXPECT_EQ(error_of([&] { embedding(ids_of({1}, {-1}), weight); }),
            "embedding: id -1 at position [0] is outside the vocabulary of 13");
  EXPECT_EQ(error_of([&] { embedding(Array::zeros({2}), weight); }),
            "embedding: ids are f32, they need to be i64");
  EXPECT_EQ(error_of([&] { embedding(ids_of({1}, {0}), Tensor::zeros({7})); }),
            "embedding: weight of shape [7], it needs [vocabulary, d]");
}

TEST(Embedding, SameBitsForAnyNumberOfThreads) {
  std::vector<std::int64_t> list;
  Random random(1, Stream::evaluation);
  for (int i = 0; i < 2503; ++i) list.push_back(random.below(31));
  const Array ids = ids_of({2503}, list);
  const Array start = random_array({31, 211}, 5).to(DType::f32);
  const Array seed = random_array({2503, 211}, 6).to(DType::f32);
  expect_same_bits_for_any_threads([&] {
    const Tensor weight(start, true);
    const Tensor y = embedding(ids, weight);
    backward(y, {.seed = seed});
    return std::vector<Array>{y.value(), weight.grad()};
  });
}

}  // namespace
}  // namespace headlab
