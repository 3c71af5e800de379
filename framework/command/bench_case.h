// What `headlab bench` measures: attention layers, whole training steps, single operations.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "framework/command/bench_shapes.h"
#include "framework/ops/telemetry.h"
#include "framework/optim/adamw.h"
#include "framework/optim/parameter_buffer.h"
#include "framework/train/catalogue.h"

namespace headlab {

enum class BenchKind : std::uint8_t { mha, train, ops };
std::string_view name_of(BenchKind kind);

struct BenchCase {
  BenchKind kind = BenchKind::mha;
  std::string name;
  /// What --only may call it: its name; of an operation also its short name and the shapes that make it.
  std::vector<std::string> names = {};
  double flops = 0;  ///< of one call, as the formulas of the comparison count them; 0: not worth counting
  double bytes = 0;  ///< that one call has to move at the least; 0: not counted
  /// Allocates, and returns what is to be measured.
  std::function<std::function<void()>()> prepare = {};
};

/// What telemetry gathers here: a handful of distances and one key, as a task with known answers asks for.
TelemetryOptions bench_telemetry();

/// Forward and backward of a layer with its projections: gradients of x and of all parameters from a random
/// upstream gradient. `telemetry`: every head's statistics are gathered on the way.
BenchCase attention_case(const AttentionShape& shape, bool telemetry);

/// A whole training step of a decoder. The catalogue must outlive it.
BenchCase training_case(const TrainingShape& shape, const Catalogue& catalogue, bool telemetry);

/// The operations that these make, at their sizes, each once: forward alone, and forward with backward.
std::vector<BenchCase> operation_cases(const BenchShapes& shapes, bool telemetry);

/// GPT-2's decoder at this shape: learned positions, pre-norm with biases, gelu by tanh, 4·d wide, read-out
/// tied to the tokens' table.
Needs training_needs(const TrainingShape& shape);

/// A training of that decoder on one batch of random tokens: AdamW at 1e-3 with (0.9, 0.999) and weight decay
/// 0.01 on everything, gradients clipped to norm 1. Not thread-safe.
class BenchTraining {
 public:
  BenchTraining(const TrainingShape& shape, const Catalogue& catalogue, bool telemetry);
  /// Forward, backward, clip, update; the loss before the update. Error: a loss that is not finite.
  double step();
  Model& model() { return *model_; }

 private:
  std::unique_ptr<Model> model_;
  Batch batch_;
  std::unique_ptr<ParameterBuffer> buffer_;
  std::unique_ptr<AdamW> optimiser_;
  std::int64_t steps_ = 0;
};

}  // namespace headlab
