#include <nlohmann/json.hpp>

#include "framework/files/atomic_file.h"
#include "framework/files/json_file.h"
#include "framework/report/ablation.h"
#include "framework/report/csv.h"
#include "framework/report/published.h"
#include "framework/train/verify.h"

namespace headlab {
namespace {

using Json = nlohmann::json;

Json to_json(const std::optional<Interval>& interval) {
  return interval ? Json{interval->low, interval->high} : Json();
}

Json to_json(const Summary& summary) {
  return {{"mean", or_null(summary.mean)}, {"ci95", to_json(summary.interval)}};
}

Json to_json(const std::optional<Comparison>& comparison) {
  if (!comparison) return {};
  return {{"n", comparison->n},
          {"mean", or_null(comparison->mean)},
          {"ci95", to_json(comparison->interval)},
          {"p", or_null(comparison->p)},
          {"adjusted_p", or_null(comparison->adjusted_p)},
          {"verdict", verdict(*comparison)}};
}

Json to_json(const SeedValues& values) {
  Json json = Json::array();
  for (const std::optional<double>& value : values) json.push_back(or_null(value));
  return json;
}

Json choice_json(const AblationLevel& level) {
  if (!level.rate) return {};
  Json seeds = Json::array(), tried = Json::array();
  for (std::int64_t s = 0; s < choosing_seeds; ++s) seeds.push_back(choosing_seed(level.config.seed, s));
  for (const TriedRate& rate : level.rate->tried) {
    tried.push_back({{"learning_rate", rate.rate}, {"loss", to_json(rate.loss)}});
  }
  return {{"seeds", seeds}, {"at_the_edge", level.rate->at_the_edge}, {"tried", tried}};
}

Json to_json(const LearningCurve& curve) {
  Json mean = Json::array(), intervals = Json::array();
  for (const Summary& loss : curve.loss) {
    mean.push_back(or_null(loss.mean));
    intervals.push_back(to_json(loss.interval));
  }
  return {{"steps", curve.steps}, {"mean", mean}, {"ci95", intervals}};
}

Json published_json() {
  Json levels = Json::array();
  for (const PublishedHeads& row : published_heads) {
    levels.push_back({{"heads", row.heads}, {"bleu", row.bleu}, {"perplexity", row.perplexity}});
  }
  return {{"source", published_heads_source}, {"levels", levels}};
}

Json to_json(const AblationLevel& level, const std::string& setting) {
  return {{"heads", level.heads},
          {"setting", setting},
          {"n", level.accuracy.n},
          {"accuracy", to_json(level.accuracy)},
          {"loss", to_json(level.loss)},
          {"difference", to_json(level.difference)},
          {"loss_difference", to_json(level.loss_difference)},
          {"parameters", level.parameters},
          {"d_model", level.d_model},
          {"d_head", level.head_size},
          {"low_rank", level.low_rank},
          {"learning_rate", level.config.recipe.learning_rate},
          {"learning_rate_choice", choice_json(level)},
          {"seconds", or_null(level.seconds)},
          {"confidence", to_json(level.confidence)},
          {"normalised_entropy", to_json(level.normalised_entropy)},
          {"clean_heads", to_json(level.clean_heads)},
          {"cover", to_json(level.cover)},
          {"blended", to_json(level.blended)},
          {"prototype", or_null(level.prototype)},
          {"curve", to_json(learning_curve(level))}};
}

Json knockout_json(const AblationResult& result) {
  if (!result.knockout || !result.picked) return {};
  Json heads = Json::array(), drop = Json::array(), intervals = Json::array();
  for (const KnockoutLoss& loss : result.knockout->heads) {
    heads.push_back(loss.head.str());
    drop.push_back(loss.readouts);
    intervals.push_back(Json::array());
    for (const std::optional<double>& half : loss.readout_intervals)
      intervals.back().push_back(or_null(half));
  }
  return {{"run", result.picked->record.name},
          {"heads", heads},
          {"readouts", result.knockout->answers},
          {"drop", drop},
          {"interval", intervals}};
}

std::string whole(std::int64_t value) { return fmt::format("{}", value); }

template <class F>
void for_each_run(const AblationResult& result, const F& f) {
  for (const AblationLevel& level : result.levels) {
    for (const std::optional<RunRecord>& run : level.runs) {
      if (run) f(level, *run);
    }
  }
}

void add_levels_and_runs(Json& json, const AblationResult& result) {
  for (const AblationLevel& level : result.levels) json["levels"].push_back(to_json(level, result.setting));
  for_each_run(result, [&](const AblationLevel&, const RunRecord& record) {
    json["runs"].push_back(headlab::to_json(record));
    json["runs"].back()["setting"] = result.setting;
  });
}

/// What one result and a grid have alike; `result` is any of the grid's.
Json common_json(const AblationResult& result) {
  Json heads = Json::array();
  for (const AblationLevel& level : result.levels) heads.push_back(level.heads);
  return {{"version", 1},
          {"numbers_version", numbers_version},
          {"task", result.base.task},
          {"factor", "heads"},
          {"hold", name_of(result.hold)},
          {"grid", nullptr},
          {"reference", result.reference},
          {"options", {{"heads", heads}, {"first_seed", result.first_seed}, {"seeds", result.seeds}}},
          {"levels", Json::array()},
          {"runs", Json::array()},
          {"published", published_json()}};
}

Csv empty_csv() {
  const std::vector<std::string> header = {"heads",       "setting",    "seed",
                                           "accuracy",    "loss",       "train_loss",
                                           "steps",       "parameters", "d_model",
                                           "d_head",      "low_rank",   "learning_rate",
                                           "seconds",     "confidence", "normalised_entropy",
                                           "clean_heads", "cover",      "distinct_offsets",
                                           "blended",     "run",        "failure"};
  return Csv(header);
}

void add_runs(Csv& csv, const AblationResult& result) {
  constexpr std::size_t fields = 21;
  for_each_run(result, [&](const AblationLevel& level, const RunRecord& record) {
    std::vector<std::string> row = {whole(record.heads), result.setting, fmt::format("{}", record.seed)};
    if (record.failure) {
      row.resize(fields - 2);
      row.insert(row.end(), {record.name, *record.failure});
      csv.row(row);
      return;
    }
    for (const double value : {record.accuracy, record.loss, record.train_loss}) {
      row.push_back(csv_number(value));
    }
    for (const std::int64_t value : {record.steps, record.parameters, level.d_model, record.head_size}) {
      row.push_back(whole(value));
    }
    row.push_back(level.low_rank ? "1" : "0");
    row.push_back(csv_number(level.config.recipe.learning_rate));
    row.push_back(csv_number(record.seconds));
    if (const std::optional<HeadFigures>& figures = record.figures) {
      row.insert(row.end(), {csv_number(figures->confidence), csv_number(figures->normalised_entropy),
                             whole(figures->clean_heads), whole(figures->cover),
                             whole(figures->distinct_offsets), csv_number(figures->blended)});
    } else {
      row.resize(row.size() + 6);
    }
    row.insert(row.end(), {record.name, ""});
    csv.row(row);
  });
}

}  // namespace

nlohmann::json ablation_json(const AblationResult& result) {
  Json json = common_json(result);
  json["options"]["config"] = headlab::to_json(result.base);
  json["interrupted"] = result.interrupted;
  json["finding"] = finding(result);
  json["jobs"] = jobs_of_heads(result);
  json["picked"] = result.picked ? Json(result.picked->record.name) : Json();
  json["knockout"] = knockout_json(result);
  add_levels_and_runs(json, result);
  return json;
}

nlohmann::json ablation_json(const AblationGrid& grid) {
  Json json = common_json(grid.results.front());
  Json settings = Json::array();
  json["findings"] = Json::array();
  json["knockout"] = nullptr;
  for (const AblationResult& result : grid.results) {
    settings.push_back(result.setting);
    json["findings"].push_back({{"setting", result.setting},
                                {"config", headlab::to_json(result.base)},
                                {"finding", finding(result)},
                                {"jobs", jobs_of_heads(result)}});
    if (result.knockout) json["knockout"] = knockout_json(result);
    add_levels_and_runs(json, result);
  }
  json["grid"] = {{"option", grid.option}, {"settings", settings}};
  json["interrupted"] = grid.interrupted;
  json["finding"] = finding(grid);
  json["picked"] = grid.picked ? Json(grid.picked->record.name) : Json();
  return json;
}

std::string ablation_csv(const AblationResult& result) {
  Csv csv = empty_csv();
  add_runs(csv, result);
  return csv.str();
}

std::string ablation_csv(const AblationGrid& grid) {
  Csv csv = empty_csv();
  for (const AblationResult& result : grid.results) add_runs(csv, result);
  return csv.str();
}

void write_ablation(const AblationResult& result, const MadeBy& made_by) {
  save_result(result.folder, "results.json", ablation_json(result), made_by);
  write_file(result.folder / "results.csv", ablation_csv(result));
}

void write_ablation(const AblationGrid& grid, const MadeBy& made_by) {
  const std::filesystem::path& folder = grid.results.front().folder;
  save_result(folder, "results.json", ablation_json(grid), made_by);
  write_file(folder / "results.csv", ablation_csv(grid));
}

}  // namespace headlab
