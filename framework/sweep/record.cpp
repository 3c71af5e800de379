#include "framework/sweep/record.h"

#include <string_view>

#include <nlohmann/json.hpp>

#include "framework/core/check.h"
#include "framework/files/json_file.h"

namespace headlab {
namespace {

template <class T>
void read(const nlohmann::json& json, std::string_view field, T& value) {
  const auto found = json.is_object() ? json.find(field) : json.end();
  check(found != json.end(), "run record", "'{}' is missing", field);
  try {
    found->get_to(value);
  } catch (const nlohmann::json::exception&) {
    fail("run record", "'{}' has the wrong type: {}", field, found->type_name());
  }
}

template <class T>
void read(const nlohmann::json& json, std::string_view field, std::optional<T>& value) {
  const auto found = json.is_object() ? json.find(field) : json.end();
  check(found != json.end(), "run record", "'{}' is missing", field);
  if (found->is_null()) return;
  T there;
  read(json, field, there);
  value = there;
}

nlohmann::json figures_to_json(const HeadFigures& figures) {
  return {{"confidence", figures.confidence},
          {"normalised_entropy", figures.normalised_entropy},
          {"heads", figures.heads},
          {"clean_heads", figures.clean_heads},
          {"cover", figures.cover},
          {"targets", figures.targets},
          {"distinct_offsets", figures.distinct_offsets},
          {"blended", or_null(figures.blended)}};
}

HeadFigures figures_from_json(const nlohmann::json& json) {
  HeadFigures figures;
  read(json, "confidence", figures.confidence);
  read(json, "normalised_entropy", figures.normalised_entropy);
  read(json, "heads", figures.heads);
  read(json, "clean_heads", figures.clean_heads);
  read(json, "cover", figures.cover);
  read(json, "targets", figures.targets);
  read(json, "distinct_offsets", figures.distinct_offsets);
  if (json.contains("blended")) read(json, "blended", figures.blended);  // older records have none
  return figures;
}

}  // namespace

nlohmann::json to_json(const RunRecord& record) {
  nlohmann::json json = {{"heads", record.heads},
                         {"seed", record.seed},
                         {"name", record.name},
                         {"failure", or_null(record.failure)}};
  if (record.failure) return json;
  json.update({{"accuracy", record.accuracy},
               {"loss", record.loss},
               {"train_loss", record.train_loss},
               {"steps", record.steps},
               {"parameters", record.parameters},
               {"d_head", record.head_size},
               {"seconds", or_null(record.seconds)},
               {"curve", record.curve}});
  json["figures"] = record.figures ? figures_to_json(*record.figures) : nlohmann::json();
  return json;
}

RunRecord run_record_from_json(const nlohmann::json& json) {
  RunRecord record;
  read(json, "heads", record.heads);
  read(json, "seed", record.seed);
  read(json, "name", record.name);
  read(json, "failure", record.failure);
  if (record.failure) return record;
  read(json, "accuracy", record.accuracy);
  read(json, "loss", record.loss);
  read(json, "train_loss", record.train_loss);
  read(json, "steps", record.steps);
  read(json, "parameters", record.parameters);
  read(json, "d_head", record.head_size);
  read(json, "seconds", record.seconds);
  read(json, "curve", record.curve);
  const auto figures = json.find("figures");
  check(figures != json.end(), "run record", "'figures' is missing");
  if (!figures->is_null()) record.figures = figures_from_json(*figures);
  return record;
}

}  // namespace headlab
