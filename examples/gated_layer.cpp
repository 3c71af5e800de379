// How to add a layer: a class with named parts, called like a function. Made of operations that there are, it
// needs no backward pass of its own (custom_layer.cpp writes one). The command then checks it:
//
//   gated_layer check-layer gated     gradients, files, threads, memory, time
#include "framework/command/run.h"
#include "framework/nn/linear.h"
#include "framework/ops/arithmetic.h"
#include "framework/ops/elementwise.h"

using namespace headlab;

namespace {

// y = value(x) ∘ sigmoid(gate(x)) (Dauphin et al. 2017)
class Gated final : public Module {
 public:
  struct Options {
    std::int64_t in = 0, out = 0;
  };
  explicit Gated(const Options& o)
      : value(this, "value", Linear::Options{.in = o.in, .out = o.out}),
        gate(this, "gate", Linear::Options{.in = o.in, .out = o.out}) {}

  // x [..., in] → [..., out]
  Tensor operator()(const Tensor& x) {
    const Tensor values = value(x);  // one operation a line: their order is that of the gradients
    const Tensor gates = sigmoid(gate(x));
    return mul(values, gates);
  }

  Child<Linear> value, gate;
};

}  // namespace

int main(int argc, char** argv) {
  Catalogue catalogue;
  catalogue.add(known_layer<Gated>("gated", "a gated linear unit", Gated::Options{.in = 5, .out = 7},
                                   {{{2, 3, 5}}},  // the shape of its input
                                   [](Gated& layer, std::span<const Tensor> x) { return layer(x[0]); }));
  return run_command(argc, argv, catalogue);
}
