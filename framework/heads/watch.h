// What every head does while a model trains, written to the run's heads.safetensors.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

#include "framework/data/batch.h"
#include "framework/files/safetensors.h"
#include "framework/heads/site_telemetry.h"
#include "framework/train/observer.h"

namespace headlab {

/// Sequences that are looked at: the first of the half of the held-out set that is scored.
constexpr std::int64_t watched_sequences = 64;

/// Every so many steps and at the last one, runs the same held-out sequences in evaluation mode and replaces
/// the file by one with a row more; the step's line of metrics.jsonl then holds "heads_row", the index of the
/// row. Changes no bit of the training. A training that is resumed goes on behind the rows up to its first
/// step; later ones, left by a process that was killed, are dropped.
///
/// Arrays: `step` i64 [n], steps done; for each head layer by its path, such as "blocks.0.attn", f32
///   .entropy, .normalised_entropy, .effective_keys, .confidence, .distance, .sink_mass, .self_mass,
///   .duplicate_mass (self attention only)         [n, heads]
///   .offset_mass, .offset_share                   [n, heads, offsets]
///   .target_mass, .target_share, .target_entropy  [n, heads, targets], where the task has targets there
/// Each is a mean over queries, as PatternSummary and TargetScore have them (target_entropy is normalised).
/// Metadata says what each is; `format` is the version, and "blocks.0.attn.offsets" and
/// "blocks.0.attn.targets" are JSON lists of the offsets δ and of the names of targets.
class HeadWatch : public Observer {
 public:
  /// Writes to the folder of the run that is trained; `seed` is the run's. Error: every < 1.
  HeadWatch(std::filesystem::path run, std::int64_t every, std::uint64_t seed);

  /// Errors: a model without heads; a layer without telemetry; a file that does not fit the model (names what
  /// differs) when there are rows to go on behind.
  void on_start(Model& model, const Task& task, std::int64_t first_step, std::int64_t steps) override;
  void on_step(Model& model, const StepReport& report) override;
  void add_metrics(std::int64_t step, nlohmann::ordered_json& line) override;

  static constexpr const char* format = "headlab heads 1";

 private:
  NamedArrays measure(Model& model, std::int64_t step) const;
  void describe(Model& model, const Task& task);
  void begin_file(const NamedArrays& like, std::int64_t first_step);

  std::filesystem::path run_;
  std::int64_t every_;
  std::uint64_t seed_;
  Batch batch_;
  SiteQuestions questions_;
  Metadata metadata_;
  NamedArrays rows_;  // as in the file
};

/// The `every` that a run was watched with last; absent when it was not. Errors: no run there; a
/// heads.safetensors that is not one of HeadWatch.
std::optional<std::int64_t> watched_every(const std::filesystem::path& run);

}  // namespace headlab
