// Heads that are switched off while a model trains.
#pragma once

#include <cstdint>
#include <span>

#include "framework/train/observer.h"
#include "framework/train/run_config.h"

namespace headlab {

/// Closes the gates of the heads that go off before `step`, those of weights that have had `step` steps.
/// Layers without such a head keep their gate. Error: no such head.
void switch_heads_off(Model& model, std::span<const HeadOff> heads, std::int64_t step);

/// What a training with such heads observes first: each goes off before the step that follows its number. The
/// gates stay as they are afterwards, and load_run() sets them again.
class HeadsOff : public Observer {
 public:
  explicit HeadsOff(std::span<const HeadOff> heads) : heads_(heads) {}
  /// Error: no such head.
  void on_start(Model& model, const Task& task, std::int64_t first_step, std::int64_t steps) override;
  void before_step(Model& model, std::int64_t step) override;

 private:
  std::span<const HeadOff> heads_;
};

}  // namespace headlab
