#include "framework/train/run_writer.h"

#include <algorithm>
#include <cmath>

#include <nlohmann/json.hpp>

#include "framework/core/check.h"

namespace headlab {

namespace {

RunFolder prepare(const RunConfig& config, const TrainOptions& options) {
  const bool known = RunFolder::is_run(options.run);
  RunFolder folder = RunFolder::create(options.run, options.resume || known);
  if (!options.resume) {
    std::error_code error;
    check(!std::filesystem::exists(folder.last_checkpoint(), error), options.run.string(),
          "already holds a trained run; resume it or choose another folder");
  }
  if (known) {
    const RunConfig before = run_config_from_json(folder.read_config(), folder.config().string());
    check_same(to_json(before), to_json(config), options.run.string(), "config.json", "this training");
  } else {
    folder.write_config(to_json(config));
  }
  return folder;
}

}  // namespace

RunWriter::RunWriter(Model& model, Optimiser& optimiser, const Task& task, const RunConfig& config,
                     const TrainOptions& options)
    : model_(model), optimiser_(optimiser), config_(config), options_(options) {
  check(!options.resume || !options.run.empty(), "train", "there is no run folder to resume from");
  if (options.run.empty()) return;
  if (task.vocabulary() != nullptr) vocabulary_ = *task.vocabulary();
  if (options.snapshots) snapshot_steps_ = snapshot_steps(config.recipe.steps);
  folder_ = prepare(config, options);
}

std::int64_t RunWriter::start() {
  if (!folder_) return 0;
  std::int64_t step = 0;
  std::error_code error;
  const std::filesystem::path path = folder_->last_checkpoint();
  if (options_.resume && std::filesystem::exists(path, error)) {
    const Checkpoint saved = load_checkpoint(path);
    check_same(to_json(saved.config), to_json(config_), path.string(), "the checkpoint", "this training");
    check(saved.vocabulary == vocabulary_, path.string(),
          "vocabulary: the text has other characters than the one that the run was started with");
    check(saved.step <= config_.recipe.steps, path.string(), "step {} is beyond the {} steps of the run",
          saved.step, config_.recipe.steps);
    model_.load_state(saved.parameters);
    optimiser_.load_state(saved.optimiser);
    best_loss_ = saved.best_loss;
    best_step_ = saved.best_step;
    step = saved.step;
  }
  log_.emplace(folder_->metrics(), step);
  if (step == 0) snapshot(0);
  return step;
}

void RunWriter::after_step(const StepReport& report, const std::optional<Evaluation>& evaluation, bool last) {
  if (!folder_) return;
  nlohmann::ordered_json more;
  for (Observer* observer : options_.observers) observer->add_metrics(report.step, more);
  if (evaluation || last || !more.empty() || report.step % options_.log_every == 0) {
    log_->write(report, evaluation, more);
  }
  if (evaluation && std::isfinite(evaluation->loss) && (!best_loss_ || evaluation->loss < *best_loss_)) {
    best_loss_ = evaluation->loss;
    best_step_ = report.step;
    save_checkpoint(folder_->best_checkpoint(), checkpoint(report.step, true));
  }
  snapshot(report.step);
  if (last || (options_.checkpoint_every > 0 && report.step % options_.checkpoint_every == 0)) {
    // The log first: a checkpoint never claims steps whose lines could be lost.
    log_->flush();
    save_checkpoint(folder_->last_checkpoint(), checkpoint(report.step, true));
  }
  if (last) log_->close();
}

Checkpoint RunWriter::checkpoint(std::int64_t step, bool with_optimiser) const {
  Checkpoint result;
  result.config = config_;
  result.vocabulary = vocabulary_;
  result.step = step;
  result.best_loss = best_loss_;
  result.best_step = best_step_;
  result.parameters = model_.state();
  if (with_optimiser) result.optimiser = optimiser_.state();
  return result;
}

void RunWriter::snapshot(std::int64_t step) {
  if (!std::binary_search(snapshot_steps_.begin(), snapshot_steps_.end(), step)) return;
  save_checkpoint(folder_->snapshot(step), checkpoint(step, false));
}

}  // namespace headlab
