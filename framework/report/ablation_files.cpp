#include <nlohmann/json.hpp>

#include "framework/files/atomic_file.h"
#include "framework/files/json_file.h"
#include "framework/report/ablation.h"
#include "framework/report/csv.h"
#include "framework/train/verify.h"

namespace headlab {
namespace {

using Json = nlohmann::json;

template <class T>
Json or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json();
}

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
          {"adjusted_p", or_null(comparison->adjusted_p)}};
}

Json to_json(const AblationLevel& level) {
  return {{"heads", level.heads},
          {"n", level.accuracy.n},
          {"accuracy", to_json(level.accuracy)},
          {"loss", to_json(level.loss)},
          {"difference", to_json(level.difference)},
          {"loss_difference", to_json(level.loss_difference)},
          {"parameters", level.parameters},
          {"d_head", level.head_size},
          {"seconds", or_null(level.seconds)},
          {"confidence", to_json(level.confidence)},
          {"normalised_entropy", to_json(level.normalised_entropy)},
          {"clean_heads", to_json(level.clean_heads)},
          {"cover", to_json(level.cover)},
          {"prototype", or_null(level.prototype)}};
}

Json knockout_json(const AblationResult& result) {
  if (!result.knockout || !result.picked) return {};
  Json heads = Json::array(), drop = Json::array();
  for (const KnockoutLoss& loss : result.knockout->heads) {
    heads.push_back(loss.head.str());
    drop.push_back(loss.readouts);
  }
  return {{"run", result.picked->record.name},
          {"heads", heads},
          {"readouts", result.knockout->answers},
          {"drop", drop}};
}

std::vector<const RunRecord*> records_of(const AblationResult& result) {
  std::vector<const RunRecord*> records;
  for (const AblationLevel& level : result.levels) {
    for (const std::optional<RunRecord>& run : level.runs) {
      if (run) records.push_back(&*run);
    }
  }
  return records;
}

std::string whole(std::int64_t value) { return fmt::format("{}", value); }

}  // namespace

nlohmann::json ablation_json(const AblationResult& result) {
  Json levels = Json::array(), heads = Json::array(), runs = Json::array();
  for (const AblationLevel& level : result.levels) {
    heads.push_back(level.heads);
    levels.push_back(to_json(level));
  }
  for (const RunRecord* record : records_of(result)) runs.push_back(headlab::to_json(*record));
  return {{"version", 1},
          {"numbers_version", numbers_version},
          {"task", result.base.task},
          {"factor", "heads"},
          {"reference", result.reference},
          {"interrupted", result.interrupted},
          {"finding", finding(result)},
          {"options",
           {{"config", headlab::to_json(result.base)},
            {"heads", std::move(heads)},
            {"first_seed", result.first_seed},
            {"seeds", result.seeds}}},
          {"levels", std::move(levels)},
          {"runs", std::move(runs)},
          {"picked", result.picked ? Json(result.picked->record.name) : Json()},
          {"knockout", knockout_json(result)}};
}

std::string ablation_csv(const AblationResult& result) {
  const std::vector<std::string> header = {"heads",
                                           "seed",
                                           "accuracy",
                                           "loss",
                                           "train_loss",
                                           "steps",
                                           "parameters",
                                           "d_head",
                                           "seconds",
                                           "confidence",
                                           "normalised_entropy",
                                           "clean_heads",
                                           "cover",
                                           "distinct_offsets",
                                           "run",
                                           "failure"};
  Csv csv(header);
  for (const RunRecord* record : records_of(result)) {
    std::vector<std::string> row = {whole(record->heads), fmt::format("{}", record->seed)};
    if (record->failure) {
      row.resize(header.size() - 2);
      row.insert(row.end(), {record->name, *record->failure});
      csv.row(row);
      continue;
    }
    for (const double value : {record->accuracy, record->loss, record->train_loss})
      row.push_back(csv_number(value));
    for (const std::int64_t value : {record->steps, record->parameters, record->head_size}) {
      row.push_back(whole(value));
    }
    row.push_back(csv_number(record->seconds));
    if (const std::optional<HeadFigures>& figures = record->figures) {
      row.insert(row.end(),
                 {csv_number(figures->confidence), csv_number(figures->normalised_entropy),
                  whole(figures->clean_heads), whole(figures->cover), whole(figures->distinct_offsets)});
    } else {
      row.resize(row.size() + 5);
    }
    row.insert(row.end(), {record->name, ""});
    csv.row(row);
  }
  return csv.str();
}

void write_ablation(const AblationResult& result) {
  write_json(result.folder / "results.json", ablation_json(result));
  write_file(result.folder / "results.csv", ablation_csv(result));
}

}  // namespace headlab
