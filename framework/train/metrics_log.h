// metrics.jsonl of a run: one JSON object a step, each step once.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

#include <nlohmann/json_fwd.hpp>

#include "framework/files/line_log.h"
#include "framework/train/observer.h"

namespace headlab {

/// A line: {"step": 3, "loss": 1.5, "learning_rate": 0.01, "gradient_norm": 0.7}; with "skipped": true where
/// the gradient was not finite and nothing was updated, and with "validation_loss" and "accuracy" where the
/// model was evaluated; then what observers add. Numbers that are not finite are null, so that every line is
/// valid JSON.
class MetricsLog {
 public:
  /// Opens for appending behind step `step`: lines of later steps, left by a run that was killed after its
  /// last checkpoint, are dropped. Errors: those of LineLog.
  MetricsLog(const std::filesystem::path& path, std::int64_t step);
  /// `more`: an object, or nothing.
  void write(const StepReport& report, const std::optional<Evaluation>& evaluation,
             const nlohmann::ordered_json& more);
  /// Forces everything to the disk.
  void flush() { lines_.flush(); }
  void close() { lines_.close(); }

 private:
  LineLog lines_;
};

}  // namespace headlab
