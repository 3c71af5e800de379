#include "framework/optim/parameter_buffer.h"

#include <cstdint>

#include "framework/ops/linear.h"
#include "tests/optim/parameters.h"
#include "tests/support/ops.h"

namespace headlab {
namespace {

TEST(ParameterBuffer, LaysParametersOutAtMultiplesOf64Bytes) {
  const OptimisedParameter a = parameter_of<float>("a", {1, 2, 3});
  const OptimisedParameter b = parameter_of<float>("b", std::vector<float>(17, 4), false);
  const OptimisedParameter c = parameter_of<float>("c", {});
  const OptimisedParameter d = parameter_of<float>("d", {5});
  ParameterBuffer buffer({a, b, c, d});
  ASSERT_EQ(buffer.segments().size(), 4U);
  EXPECT_EQ(buffer.segments()[1].offset, 16);
  EXPECT_EQ(buffer.segments()[3].offset, 48);
  EXPECT_EQ(buffer.values().shape(), Shape{64});
  EXPECT_EQ(buffer.count(), 21);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(buffer.values().raw()) % 64, 0U);
  EXPECT_TRUE(a.tensor.value().shares_buffer_with(buffer.values()));
  EXPECT_EQ(numbers(a.tensor.value()), (std::vector<double>{1, 2, 3}));
  EXPECT_EQ(buffer.values().at(3), 0);
  EXPECT_EQ(buffer.decayed(), (std::vector<std::string>{"a", "c", "d"}));
}

TEST(ParameterBuffer, GradientsArriveInTheFlatArray) {
  const OptimisedParameter weight{"weight", Tensor(random_array({2, 3}, 1), true), true};
  const OptimisedParameter bias{"bias", Tensor(random_array({2}, 2), true), false};
  ParameterBuffer buffer({weight, bias});
  const Tensor x(random_array({1, 3}, 3));
  EXPECT_FALSE(buffer.segments()[0].touched());
  const Tensor y = linear(x, weight.tensor);
  backward(y, {.seed = Array::full({1, 2}, 1, DType::f64)});
  EXPECT_TRUE(buffer.segments()[0].touched());
  EXPECT_FALSE(buffer.segments()[1].touched());
  EXPECT_TRUE(same_bits(buffer.gradients().range(0, 3), x.value().reshape({3})));
  EXPECT_EQ(buffer.touched_pieces().size(), 1U);
  buffer.clear_gradients();
  EXPECT_FALSE(buffer.segments()[0].touched());
  EXPECT_TRUE(buffer.touched_pieces().empty());
}

TEST(ParameterBuffer, TiedOnceFrozenNotAtAll) {
  const OptimisedParameter tied = parameter_of<float>("embedding", {1});
  const OptimisedParameter again{"head", tied.tensor, true};
  const OptimisedParameter frozen{"frozen", Tensor::zeros({3}), true};
  const ParameterBuffer buffer({tied, frozen, again});
  EXPECT_EQ(buffer.decayed(), std::vector<std::string>{"embedding"});
  EXPECT_EQ(buffer.count(), 1);
  EXPECT_FALSE(frozen.tensor.value().shares_buffer_with(buffer.values()));
}

TEST(ParameterBuffer, OfNothing) {
  const ParameterBuffer buffer({});
  EXPECT_EQ(buffer.count(), 0);
  EXPECT_EQ(buffer.values().size(), 0);
}

TEST(ParameterBuffer, Errors) {
  const OptimisedParameter a = parameter_of<float>("a", {1});
  EXPECT_EQ(error_of([&] {
              ParameterBuffer({a, parameter_of<float>("a", {2})});
            }),
            "parameters: two tensors are named 'a'");
  EXPECT_EQ(error_of([&] {
              ParameterBuffer({a, parameter_of<double>("b", {2})});
            }),
            "parameters: 'b' is f64, 'a' is f32");
  EXPECT_EQ(error_of([&] {
              ParameterBuffer({{"none", Tensor(), true}});
            }),
            "parameters: 'none' is undefined");
  const Tensor computed = linear(Tensor::zeros({1, 1}), Tensor(Array::zeros({1, 1}), true));
  EXPECT_EQ(error_of([&] {
              ParameterBuffer({{"y", computed, true}});
            }),
            "parameters: 'y' is a computed tensor, not a leaf");
}

}  // namespace
}  // namespace headlab
