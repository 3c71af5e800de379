// Which step of training this thread is in: dropout is a function of it, so that repeats, shards and resumed
// runs drop the same.
#pragma once

#include <cstdint>
#include <string_view>

#include "framework/ops/dropout.h"

namespace headlab {

/// Put one on the stack around a forward pass. Without one, dropout counts its own calls.
class TrainingStep {
 public:
  struct Position {
    std::uint64_t seed = 0;
    std::int64_t step = 0;
    std::int64_t micro_step = 0;     ///< within an accumulated step
    std::int64_t first_example = 0;  ///< global index of the batch's first example
  };
  explicit TrainingStep(const Position& position);
  ~TrainingStep();
  TrainingStep(const TrainingStep&) = delete;
  TrainingStep& operator=(const TrainingStep&) = delete;

  /// The innermost one of this thread, or nullptr.
  static const Position* now();

 private:
  Position position_;
  const Position* before_;
};

/// The key of a module's dropout at this point: from TrainingStep, the module's path and the size of one
/// example. `calls` is the module's own counter for use outside a TrainingStep, and is raised then.
DropoutKey dropout_key(std::string_view path, std::int64_t elements_per_example, std::uint64_t& calls);

}  // namespace headlab
