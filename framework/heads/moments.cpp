#include "framework/heads/moments.h"

#include <algorithm>
#include <cstring>

#include <nlohmann/json.hpp>

#include "framework/core/check.h"
#include "framework/files/line_log.h"
#include "framework/files/run_folder.h"
#include "framework/train/checkpoint.h"
#include "framework/train/trainer.h"

namespace headlab {

namespace {

/// Keeps copies of the weights at some steps.
class Keeper final : public Observer {
 public:
  Keeper(std::vector<std::int64_t> steps, std::vector<Moment>& moments)
      : steps_(std::move(steps)), moments_(moments) {}
  void on_start(Model& model, const Task&, std::int64_t first_step, std::int64_t) override {
    keep(model, first_step);
  }
  void on_step(Model& model, const StepReport& report) override { keep(model, report.step); }

 private:
  void keep(Model& model, std::int64_t step) {
    if (std::count(steps_.begin(), steps_.end(), step) > 0) moments_.push_back({step, model.state()});
  }
  std::vector<std::int64_t> steps_;
  std::vector<Moment>& moments_;
};

bool same(const std::map<std::string, Array>& a, const std::map<std::string, Array>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const auto& x, const auto& y) {
    return x.first == y.first && x.second.shape() == y.second.shape() &&
           x.second.dtype() == y.second.dtype() &&
           std::memcmp(x.second.raw(), y.second.raw(), static_cast<std::size_t>(x.second.bytes())) == 0;
  });
}

void read_losses(const RunFolder& folder, Course& course) {
  for (const std::string& line : read_lines(folder.metrics())) {
    const nlohmann::json json = nlohmann::json::parse(line, nullptr, false);
    if (!json.is_object() || !json.contains("loss") || !json["loss"].is_number()) continue;
    if (!json.contains("step") || !json["step"].is_number_integer()) continue;
    course.loss_steps.push_back(json["step"].get<std::int64_t>());
    course.losses.push_back(json["loss"].get<double>());
  }
}

std::vector<std::int64_t> even_steps(std::int64_t every, std::int64_t steps) {
  constexpr std::int64_t most = 200;
  check(every >= 1, "life-line", "every {} steps, needs at least 1", every);
  check((steps + every - 1) / every < most, "life-line", "every {} of {} steps are more than {} moments",
        every, steps, most);
  std::vector<std::int64_t> moments;
  for (std::int64_t step = 0; step < steps; step += every) moments.push_back(step);
  moments.push_back(steps);
  return moments;
}

void train_again(const LoadedRun& run, const std::string& where, const Catalogue& catalogue,
                 std::vector<std::int64_t> moments, Course& course) {
  const RunConfig& config = run.config;
  const double positions = static_cast<double>(config.needs.context + config.needs.source_context);
  const double flops = 6 * config.needs.parameters() * positions *
                       static_cast<double>(config.recipe.batch * config.recipe.steps);
  constexpr double affordable = 2e12;
  check(flops <= affordable, where,
        "training this run again would take long; `headlab train` keeps snapshots to look at");
  const std::unique_ptr<Model> model = catalogue.build(config.needs);
  Keeper keeper(std::move(moments), course.moments);
  TrainOptions options;
  options.observers = {&keeper};
  course.losses = train(*model, *run.task, config, options).losses;
  for (std::size_t i = 0; i < course.losses.size(); ++i)
    course.loss_steps.push_back(static_cast<std::int64_t>(i) + 1);
  course.trained_again = true;
  check(same(model->state(), run.model->state()), where,
        "trained again, the run ends with other weights: it is of another version of headlab");
}

}  // namespace

Course course_of(const LoadedRun& run, const std::filesystem::path& folder, const Catalogue& catalogue,
                 std::optional<std::int64_t> every) {
  const std::string where = folder.string();
  check(run.task != nullptr, where, "the task of this run is needed to look at heads: {}", run.task_error);
  check(run.step == run.config.recipe.steps, where,
        "the run stands at step {} of {}; `headlab train --resume {}` goes on", run.step,
        run.config.recipe.steps, where);
  Course course;
  const RunFolder files = RunFolder::open(folder);
  const auto snapshots = files.snapshots();
  const std::int64_t steps = run.config.recipe.steps;
  if (every || snapshots.size() < 2) {
    train_again(run, where, catalogue, every ? even_steps(*every, steps) : snapshot_steps(steps), course);
    return course;
  }
  for (const auto& snapshot : snapshots)
    course.moments.push_back({snapshot.first, load_checkpoint(snapshot.second).parameters});
  read_losses(files, course);
  return course;
}

}  // namespace headlab
