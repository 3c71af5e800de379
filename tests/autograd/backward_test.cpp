#include "framework/autograd/backward.h"

#include <pthread.h>

#include "framework/autograd/gradcheck.h"
#include "framework/autograd/node.h"
#include "framework/core/pool.h"

namespace headlab {
namespace {

// Small ops of the test's own, so that this room is tested without the rooms below it.
Array map(const Array& a, const Array& b, double (*f)(double, double)) {
  Array y(a.shape(), a.dtype());
  for (std::int64_t i = 0; i < a.size(); ++i)
    y.data<double>()[i] = f(a.data<double>()[i], b.data<double>()[i]);
  return y;
}
double plus(double a, double b) { return a + b; }
double times(double a, double b) { return a * b; }

Tensor add(const Tensor& a, const Tensor& b) {
  return record("add", map(a.value(), b.value(), plus), {a, b}, [](const Array& dy, Sinks dx) {
    if (dx[0]) dx[0].add(dy);
    if (dx[1]) dx[1].add(dy);
  });
}
Tensor mul(const Tensor& a, const Tensor& b) {
  return record("mul", map(a.value(), b.value(), times), {a, b},
                [a = Saved(a, "mul"), b = Saved(b, "mul")](const Array& dy, Sinks dx) {
                  if (dx[0]) dx[0].add(map(dy, b.get(), times));
                  if (dx[1]) dx[1].add(map(dy, a.get(), times));
                });
}
Tensor square_keeping_output(const Tensor& x) {  // d(x²) = 2√y for x > 0, from the output
  Array y = map(x.value(), x.value(), times);
  return record(
      "root_rule", y, {x},
      [y](const Array& dy, Sinks dx) {
        Array g(y.shape(), DType::f64);
        for (std::int64_t i = 0; i < y.size(); ++i) {
          g.data<double>()[i] = 2 * std::sqrt(y.data<double>()[i]) * dy.data<double>()[i];
        }
        dx[0].add(g);
      },
      Keeps::output);
}
Tensor reshaped(const Tensor& x, Shape shape) {
  return record_view("reshape", x.value().reshape(shape), x,
                     [from = x.shape()](const Array& dy, Sinks dx) { dx[0].add(dy.reshape(from)); });
}
Tensor leaf(double value) { return Tensor::scalar(value, DType::f64, true); }

TEST(Backward, AddsUpEveryUseOfAValue) {
  const Tensor x = leaf(2);
  const Tensor three = Tensor::scalar(3, DType::f64);
  const Tensor two = Tensor::scalar(2, DType::f64);
  const Tensor five = Tensor::scalar(5, DType::f64);
  const Tensor y = mul(three, x);
  const Tensor p = mul(two, y);
  const Tensor q = mul(five, y);
  backward(add(p, q));
  EXPECT_EQ(x.grad().item(), 21);

  const Tensor a = leaf(1);
  const Tensor b = add(a, a);
  backward(add(b, b));
  EXPECT_EQ(a.grad().item(), 4);
}

TEST(Backward, RunsANodeOnceAfterAllUses) {
  const Tensor a = leaf(2);
  const Tensor b = leaf(3);
  const Tensor c = add(a, b);
  const Tensor d = mul(a, b);
  const Tensor s = add(c, d);
  const Tensor t = mul(c, d);
  const Tensor y = add(s, t);
  EXPECT_EQ(y.item(), 41);
  backward(y);
  EXPECT_EQ(a.grad().item(), 25);
  EXPECT_EQ(b.grad().item(), 19);
}

void deep_chain(int length, bool with_backward) {
  const Tensor x = leaf(0);
  const Tensor one = Tensor::scalar(1, DType::f64);
  Tensor y = x;
  for (int i = 0; i < length; ++i) y = add(y, one);
  EXPECT_EQ(y.item(), length);
  if (!with_backward) return;
  backward(y);
  EXPECT_EQ(x.grad().item(), 1);
}

TEST(Backward, DeepGraphsNeedConstantStack) {
  for (const bool with_backward : {true, false}) {
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, 1 << 20);
    pthread_t thread{};
    const auto body = [](void* flag) -> void* {
      deep_chain(1'000'000, *static_cast<const bool*>(flag));
      return nullptr;
    };
    bool flag = with_backward;
    ASSERT_EQ(pthread_create(&thread, &attributes, body, &flag), 0);
    pthread_join(thread, nullptr);
    pthread_attr_destroy(&attributes);
  }
  EXPECT_EQ(graph_counters().nodes, 0);
}

TEST(Backward, DeepDoublingChainIsLinear) {
  const Tensor x = leaf(1);
  const Tensor half = Tensor::scalar(0.5, DType::f64);
  Tensor y = x;
  for (int i = 0; i < 100'000; ++i) {
    const Tensor twice = add(y, y);
    y = mul(twice, half);
  }
  EXPECT_EQ(y.item(), 1);
  backward(y);
  EXPECT_EQ(x.grad().item(), 1);
}

TEST(Backward, ChangedInputIsAnError) {
  Tensor x = leaf(3);
  const Tensor y = mul(x, x);
  x.change().data<double>()[0] += 1;
  try {
    backward(y);
    FAIL() << "a silently different gradient";
  } catch (const Error& error) {
    EXPECT_STREQ(
        error.what(),
        "mul: an input of shape [] was changed in place after it was used; its gradient would be wrong");
  }
}

TEST(Backward, ChangeThroughAViewIsAnError) {
  Tensor x(Array::of<double>({2}, {1.0, 2.0}), true);
  const Tensor y = mul(x, x);
  Tensor view = reshaped(x, {2, 1});
  view.change();
  EXPECT_THROW(backward(y, {.seed = Array::full({2}, 1, DType::f64)}), Error);
  Tensor detached = x.detach();
  const Tensor z = mul(x, x);
  detached.change();
  EXPECT_THROW(backward(z, {.seed = Array::full({2}, 1, DType::f64)}), Error);
}

TEST(Backward, ChangedKeptOutputIsAnErrorThatNamesTheOp) {
  const Tensor x = leaf(3);
  Tensor y = square_keeping_output(x);
  const Tensor z = add(y, y);
  y.change().data<double>()[0] = 100;
  try {
    backward(z);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(std::string(error.what()).substr(0, 9), "root_rule");
  }
}

TEST(Backward, SecondCallIsAnErrorUnlessKept) {
  const Tensor w = leaf(3);
  const Tensor y = mul(w, w);
  const Tensor z = add(y, y);
  backward(z);
  EXPECT_EQ(w.grad().item(), 12);
  EXPECT_THROW(backward(z), Error);
  EXPECT_EQ(w.grad().item(), 12);

  const Tensor v = leaf(3);
  const Tensor kept = mul(v, v);
  const Tensor twice = add(kept, kept);
  backward(twice, {.keep_graph = true});
  backward(twice);
  EXPECT_EQ(v.grad().item(), 24);
}

TEST(Backward, NonScalarNeedsASeed) {
  const Tensor x(Array::of<double>({2}, {1.0, 2.0}), true);
  const Tensor y = mul(x, x);
  EXPECT_THROW(backward(y), Error);
  backward(y, {.seed = Array::of<double>({2}, {1.0, 10.0})});
  EXPECT_EQ(x.grad().at(0), 2);
  EXPECT_EQ(x.grad().at(1), 40);
  EXPECT_THROW(backward(Tensor::scalar(1)), Error);
}

TEST(Backward, SharedGradientIsNeverWrittenInto) {
  // add() hands one array to both inputs; the second use of a must not change b's gradient.
  const Tensor a = leaf(1);
  const Tensor b = leaf(2);
  const Tensor first = add(a, b);
  const Tensor second = add(a, first);
  backward(second);
  EXPECT_EQ(a.grad().item(), 2);
  EXPECT_EQ(b.grad().item(), 1);
}

TEST(Backward, MemoryReturnsAfterDropAndAfterAnException) {
  const auto nodes = graph_counters().nodes;
  const auto blocks = pool::counters().live_blocks;
  const auto tensors = graph_counters().tensors;
  for (int i = 0; i < 3; ++i) {
    Tensor x = leaf(3);
    const Tensor forward_only = mul(x, x);
    const Tensor kept = square_keeping_output(forward_only);
    const Tensor broken = mul(kept, x);
    x.change();
    EXPECT_THROW(backward(broken), Error);
  }
  EXPECT_EQ(graph_counters().nodes, nodes);
  EXPECT_EQ(graph_counters().tensors, tensors);
  EXPECT_EQ(pool::counters().live_blocks, blocks);
}

TEST(NoGrad, RecordsNothing) {
  const Tensor x = leaf(3);
  const auto nodes = graph_counters().nodes;
  {
    const NoGrad off;
    const Tensor y = mul(x, x);
    EXPECT_FALSE(y.requires_grad());
    EXPECT_EQ(graph_counters().nodes, nodes);
  }
  EXPECT_TRUE(mul(x, x).requires_grad());
}

TEST(Backward, UnusedOutputIsAbsent) {
  const Tensor x = leaf(3);
  const std::vector<Tensor> both = record_outputs("pair", {x.value().copy(), x.value().copy()}, {x},
                                                  [](std::span<const Array> dy, Sinks dx) {
                                                    EXPECT_TRUE(dy[0]);
                                                    EXPECT_FALSE(dy[1]);
                                                    dx[0].add(dy[0]);
                                                  });
  backward(add(both[0], both[0]));
  EXPECT_EQ(x.grad().item(), 2);
}

TEST(Tensor, BoundGradientIsWrittenInPlace) {
  Tensor x = leaf(3);
  Array flat = Array::full({2}, 7, DType::f64);
  Array flat_grad = Array::full({2}, std::nan(""), DType::f64);
  x.bind(flat.range(1, 2).reshape(Shape{}), flat_grad.range(1, 2).reshape(Shape{}));
  EXPECT_EQ(x.item(), 7);
  const Tensor y = mul(x, x);
  backward(add(y, x));
  EXPECT_EQ(flat_grad.at(1), 15);
  EXPECT_TRUE(std::isnan(flat_grad.at(0)));
}

TEST(Gradcheck, AcceptsRightAndNamesWrongGradients) {
  const auto right = [](std::span<const Tensor> in) { return mul(in[0], in[1]); };
  const std::vector<Tensor> inputs{Tensor(Array::of<double>({2}, {1.0, 2.0}), true),
                                   Tensor(Array::of<double>({2}, {3.0, 5.0}), true)};
  EXPECT_TRUE(gradcheck(right, inputs)) << gradcheck(right, inputs).message;
  const auto wrong = [](std::span<const Tensor> in) {
    return record("wrong", map(in[0].value(), in[1].value(), times), {in[0], in[1]},
                  [b = Saved(in[1], "wrong")](const Array& dy, Sinks dx) {
                    dx[0].add(map(dy, b.get(), times));
                    dx[1].add(dy);
                  });
  };
  const GradcheckResult result = gradcheck(wrong, inputs);
  EXPECT_FALSE(result);
  EXPECT_NE(result.message.find("input 1 of shape [2], index 1, output 1: analytic 1, numeric 2"),
            std::string::npos)
      << result.message;
  GradcheckOptions projected;
  projected.full_limit = 0;
  EXPECT_TRUE(gradcheck(right, inputs, projected));
  EXPECT_FALSE(gradcheck(wrong, inputs, projected));
}

}  // namespace
}  // namespace headlab
