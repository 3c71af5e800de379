// Observer: whatever watches or changes a training: progress lines, logs, telemetry, knock-outs.
#pragma once

#include <cstdint>

#include <nlohmann/json_fwd.hpp>

#include "framework/train/model.h"

namespace headlab {

class Task;

struct StepReport {
  std::int64_t step = 0;   ///< steps done, from 1
  std::int64_t steps = 0;  ///< in all
  double loss = 0;         ///< mean training loss of the step
  double learning_rate = 0;
  double gradient_norm = 0;
  bool skipped = false;     ///< the gradient was not finite: no update
  std::int64_t tokens = 0;  ///< positions fed in this step
};

struct Evaluation {
  double loss = 0;          ///< mean over scored pairs
  double accuracy = 0;      ///< as the task counts it
  std::int64_t scored = 0;  ///< pairs, or sequences
};

/// Called on the training thread, in the order in which observers were given. A training with observers that
/// only look gives the same bits as one without.
class Observer {
 public:
  virtual ~Observer() = default;
  virtual void on_start(Model& /*model*/, const Task& /*task*/, std::int64_t /*first_step*/,
                        std::int64_t /*steps*/) {}
  /// `step` steps are done, counted from 0.
  virtual void before_step(Model& /*model*/, std::int64_t /*step*/) {}
  virtual void on_step(Model& /*model*/, const StepReport& /*report*/) {}
  /// After `step` steps; the model is back in training mode.
  virtual void on_evaluation(Model& /*model*/, std::int64_t /*step*/, const Evaluation& /*evaluation*/) {}
  virtual void on_end(Model& /*model*/) {}
  /// What it has to say in the line of metrics.jsonl about this step, after on_step() and on_evaluation(). A
  /// step of which something is said has a line.
  virtual void add_metrics(std::int64_t /*step*/, nlohmann::ordered_json& /*line*/) {}
};

}  // namespace headlab
