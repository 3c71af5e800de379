#include "framework/nn/step_context.h"

#include "framework/core/random.h"

namespace headlab {

namespace {
thread_local const TrainingStep::Position* current = nullptr;
}

TrainingStep::TrainingStep(const Position& position) : position_(position), before_(current) {
  current = &position_;
}
TrainingStep::~TrainingStep() { current = before_; }
const TrainingStep::Position* TrainingStep::now() { return current; }

DropoutKey dropout_key(std::string_view path, std::int64_t elements_per_example, std::uint64_t& calls) {
  const auto stream = static_cast<std::uint64_t>(Stream::dropout);
  if (!current) return {hash(0, stream), hash(hash(path), ++calls), 0};
  const std::uint64_t step =
      hash(static_cast<std::uint64_t>(current->step), static_cast<std::uint64_t>(current->micro_step));
  return {hash(current->seed, stream), hash(hash(path), step),
          static_cast<std::uint64_t>(current->first_example * elements_per_example)};
}

}  // namespace headlab
