#include "framework/sweep/ablation_run.h"

#include <algorithm>
#include <cmath>
#include <system_error>

#include <nlohmann/json.hpp>

#include "framework/files/line_log.h"
#include "framework/files/run_folder.h"
#include "framework/heads/analyse.h"
#include "framework/train/run.h"

namespace headlab {
namespace {

constexpr std::size_t curve_points = 32;

class StepCounter final : public Observer {
 public:
  explicit StepCounter(std::atomic<std::int64_t>& step) : step_(step) {}
  void on_start(Model&, const Task&, std::int64_t first_step, std::int64_t) override { step_ = first_step; }
  void on_step(Model&, const StepReport& report) override { step_ = report.step; }

 private:
  std::atomic<std::int64_t>& step_;
};

/// Of every step, from metrics.jsonl: the training knows only the steps since it was continued.
std::vector<double> training_losses(const RunFolder& run) {
  std::vector<double> losses;
  for (const std::string& line : read_lines(run.metrics())) {
    const nlohmann::json json = nlohmann::json::parse(line, nullptr, false);
    const auto loss = json.is_object() ? json.find("loss") : json.end();
    if (loss != json.end() && loss->is_number()) losses.push_back(loss->get<double>());
  }
  return losses;
}

/// Averages over equal pieces.
std::vector<double> curve_of(const std::vector<double>& losses) {
  const std::size_t points = std::min(curve_points, losses.size());
  std::vector<double> curve;
  for (std::size_t i = 0; i < points; ++i) {
    const std::size_t begin = i * losses.size() / points, end = (i + 1) * losses.size() / points;
    double sum = 0;
    for (std::size_t j = begin; j < end; ++j) sum += losses[j];
    curve.push_back(sum / static_cast<double>(end - begin));
  }
  return curve;
}

/// HeadFigures::blended.
std::optional<double> blended(const HeadAnalysis& analysis) {
  double sum = 0, weight = 0;
  for (const HeadReport& head : analysis.heads) {
    double on_targets = 0, entropy = 0;
    const auto for_each_mass = [&](const auto& f) {
      for (std::size_t i = 0; i < head.targets.size(); ++i) {
        const bool is_key = analysis.targets[i].target.kind == HeadTarget::Kind::key;
        if (is_key && head.targets[i].queries > 0 && head.targets[i].mass > 0) f(head.targets[i].mass);
      }
    };
    for_each_mass([&](double mass) { on_targets += mass; });
    for_each_mass([&](double mass) { entropy -= mass / on_targets * std::log(mass / on_targets); });
    sum += on_targets * std::exp(entropy);
    weight += on_targets;
  }
  return weight > 0 ? std::optional(sum / weight) : std::nullopt;
}

std::optional<HeadFigures> figures_of(Model& model, const Task& task, std::uint64_t seed) {
  if (head_layers(model).empty()) return std::nullopt;
  const HeadAnalysis analysis = analyse_heads(model, task, seed);
  HeadFigures figures;
  figures.confidence = analysis.confidence;
  figures.normalised_entropy = analysis.normalised_entropy;
  figures.heads = std::ssize(analysis.heads);
  figures.clean_heads = analysis.clean_heads;
  figures.cover = analysis.cover;
  figures.targets = std::ssize(analysis.targets);
  figures.distinct_offsets = analysis.distinct_offsets;
  figures.blended = blended(analysis);
  return figures;
}

}  // namespace

std::optional<RunRecord> train_run(const Task& task, const Catalogue& catalogue, const PlannedRun& run,
                                   const RunPlace& place, std::int64_t evaluate_every) {
  RunRecord record;
  record.heads = run.config.needs.heads;
  record.seed = run.config.seed;
  record.name = run.name;

  const std::unique_ptr<Model> model = catalogue.build(run.config.needs);
  StepCounter counter(*place.step);
  TrainOptions options;
  options.run = place.folder;
  options.resume = RunFolder::is_run(place.folder);  // what a stopped or killed call left behind
  options.snapshots = false;
  options.evaluate_every = evaluate_every;
  options.observers = {&counter};
  options.stop = place.stop;
  TrainResult trained;
  try {
    trained = train(*model, task, run.config, options);
  } catch (const NonFiniteLoss& error) {
    record.failure = error.what();
    return record;
  }
  if (trained.interrupted) return std::nullopt;
  record.accuracy = trained.evaluation.accuracy;
  record.loss = trained.evaluation.loss;
  if (!std::isfinite(record.loss)) {
    record.failure = fmt::format("evaluation: the loss is not finite after {} steps", trained.steps);
    return record;
  }
  record.steps = trained.steps;
  record.parameters = trained.parameters;
  const std::vector<HeadLayer*> layers = head_layers(*model);
  record.head_size = layers.empty() ? 0 : layers.front()->head_size();
  // A continued training is timed from where it was continued: scale to all steps.
  const auto steps_here = static_cast<double>(trained.losses.size());
  if (steps_here > 0) record.seconds = trained.seconds * static_cast<double>(trained.steps) / steps_here;
  record.figures = figures_of(*model, task, run.config.seed);
  const std::vector<double> losses = training_losses(RunFolder::open(place.folder));
  if (!losses.empty()) record.train_loss = losses.back();
  record.curve = curve_of(losses);
  return record;
}

std::optional<KnockoutMatrix> knockout_of_run(const Task& task, const Catalogue& catalogue,
                                              const RunConfig& config, const std::filesystem::path& run) {
  std::error_code error;
  if (!std::filesystem::exists(RunFolder::open(run).last_checkpoint(), error)) return std::nullopt;
  const LoadedRun loaded = load_run(run, catalogue);
  if (head_layers(*loaded.model).empty()) return std::nullopt;
  return knockout_matrix(*loaded.model, task, config.seed);
}

}  // namespace headlab
