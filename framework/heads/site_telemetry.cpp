#include "framework/heads/site_telemetry.h"

#include <algorithm>
#include <memory>

#include "framework/core/check.h"
#include "framework/heads/pattern_summary.h"

namespace headlab {

namespace {

std::int64_t first_allowed(const ResolvedMask::Row& row) {
  std::int64_t key = row.first;
  while (!row.allows(key)) ++key;  // there are two
  return key;
}

/// Writes the labels of one target that take part.
void write_labels(const HeadTarget& target, const Array& given, const ResolvedMask& mask, const Shape& shape,
                  std::int64_t* labels) {
  check(given && given.dtype() == DType::i64 && given.shape() == shape, "head target",
        "labels {} of {} do not fit {} examples of {} queries", given.shape(), target.name, shape[0],
        shape[1]);
  for (std::int64_t i = 0; i < given.size(); ++i) {
    const std::int64_t example = i / shape[1];
    const std::int64_t query = i % shape[1];
    std::int64_t key = given.data<std::int64_t>()[i];
    labels[i] = unscored;
    if (key == unscored || mask.allowed_keys(example, 0, query) < 2) continue;
    const ResolvedMask::Row row = mask.row(example, 0, query);
    if (target.kind == HeadTarget::Kind::uniform) key = first_allowed(row);
    check(row.allows(key), "head target", "{}: example {}, query {}: key {} may not be attended to",
          target.name, example, query, key);
    labels[i] = key;
  }
}

SiteQuestion question_of(AttentionSite site, const Needs& needs, const std::vector<HeadTarget>& targets,
                         const Batch& batch) {
  const std::int64_t batch_size = batch.size();
  const std::int64_t n_q = (site == AttentionSite::encoder ? batch.inputs.at(0) : batch.targets).dim(1);
  SiteQuestion question;
  question.n_k = site == AttentionSite::cross ? batch.inputs.at(0).dim(1) : n_q;
  question.telemetry.offsets = summary_offsets(n_q, question.n_k);
  question.telemetry.keys = {0};
  question.telemetry.counted = counted_queries(site, batch);
  for (std::size_t t = 0; t < targets.size(); ++t) {
    if (targets[t].site == site) question.targets.push_back(t);
  }
  if (question.targets.empty()) return question;
  const ResolvedMask mask(mask_of(site, needs, batch), batch_size, 1, n_q, question.n_k, "head target");
  const auto count = static_cast<std::int64_t>(question.targets.size());
  question.telemetry.labels = Array({count, batch_size, n_q}, DType::i64);
  std::int64_t* labels = question.telemetry.labels.data<std::int64_t>();
  for (const std::size_t t : question.targets) {
    write_labels(targets[t], batch.head_targets.at(t), mask, {batch_size, n_q}, labels);
    labels += batch_size * n_q;
  }
  return question;
}

}  // namespace

std::optional<std::size_t> SiteQuestion::label_of(std::size_t target) const {
  const auto found = std::find(targets.begin(), targets.end(), target);
  if (found == targets.end()) return std::nullopt;
  return static_cast<std::size_t>(found - targets.begin());
}

Array SiteQuestion::labels(std::size_t label) const {
  const auto index = static_cast<std::int64_t>(label);
  const Shape& shape = telemetry.labels.shape();
  return telemetry.labels.range(index, index + 1).reshape({shape[1], shape[2]});
}

SiteQuestions site_questions(Model& model, const std::vector<HeadTarget>& targets, const Batch& batch) {
  SiteQuestions questions;
  for (HeadLayer* layer : head_layers(model)) {
    const AttentionSite site = site_of(*layer, model.needs());
    if (questions.count(site) == 0) questions[site] = question_of(site, model.needs(), targets, batch);
  }
  return questions;
}

std::vector<Telemetry> layer_telemetry(Model& model, const SiteQuestions& questions, const Batch& batch) {
  const std::vector<HeadLayer*> layers = head_layers(model);
  std::vector<std::unique_ptr<TelemetryScope>> scopes;
  for (HeadLayer* layer : layers) {
    const SiteQuestion& question = questions.at(site_of(*layer, model.needs()));
    scopes.push_back(std::make_unique<TelemetryScope>(*layer, question.telemetry));
  }
  model.logits(batch);
  std::vector<Telemetry> result;
  for (HeadLayer* layer : layers) {
    check(layer->telemetry().has_value(), "heads", "layer {} gives no telemetry", layer->module().path());
    result.push_back(*layer->telemetry());
    check(static_cast<std::int64_t>(result.back().heads.size()) == layer->heads(), "heads",
          "layer {} gives telemetry of {} heads and has {}", layer->module().path(),
          result.back().heads.size(), layer->heads());
  }
  return result;
}

}  // namespace headlab
