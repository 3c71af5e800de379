#include "framework/heads/watch.h"

#include <algorithm>
#include <cstring>

#include <nlohmann/json.hpp>

#include "framework/core/check.h"
#include "framework/files/run_folder.h"
#include "framework/heads/pattern_summary.h"
#include "framework/heads/target_score.h"

namespace headlab {

namespace {

/// One step's numbers of a layer, [1, heads] or [1, heads, n].
class LayerRow {
 public:
  LayerRow(NamedArrays& arrays, std::string layer, std::int64_t heads)
      : arrays_(arrays), layer_(std::move(layer)), heads_(heads) {}
  void set(const std::string& name, std::size_t head, double value) {
    at(name, Shape{1, heads_}).data<float>()[head] = static_cast<float>(value);
  }
  void set(const std::string& name, std::size_t head, const std::vector<double>& values) {
    const auto size = static_cast<std::int64_t>(values.size());
    float* to = at(name, Shape{1, heads_, size}).data<float>() + static_cast<std::int64_t>(head) * size;
    std::transform(values.begin(), values.end(), to, [](double x) { return static_cast<float>(x); });
  }

 private:
  Array& at(const std::string& name, const Shape& shape) {
    Array& array = arrays_[layer_ + "." + name];
    if (!array) array = Array::zeros(shape);
    return array;
  }
  NamedArrays& arrays_;
  std::string layer_;
  std::int64_t heads_;
};

void set_head(LayerRow& row, std::size_t head, const HeadTelemetry& sums, const SiteQuestion& question) {
  const PatternSummary s = pattern_summary(sums, question.telemetry.offsets.front());
  row.set("entropy", head, s.entropy);
  row.set("normalised_entropy", head, s.normalised_entropy);
  row.set("effective_keys", head, s.effective_keys);
  row.set("confidence", head, s.confidence);
  row.set("distance", head, s.distance);
  row.set("sink_mass", head, s.sink_mass);
  row.set("self_mass", head, s.self_mass);
  row.set("offset_mass", head, s.offset_mass);
  row.set("offset_share", head, s.offset_share);
  if (question.telemetry.tokens) row.set("duplicate_mass", head, sums.duplicate.mean_mass());
  if (sums.labels.empty()) return;
  std::vector<double> mass;
  std::vector<double> share;
  std::vector<double> entropy;
  for (const HeadTelemetry::Mass& label : sums.labels) {
    mass.push_back(label.mean_mass());
    share.push_back(label.share());
    entropy.push_back(target_score(label, HeadTarget::Kind::uniform).normalised_entropy);
  }
  row.set("target_mass", head, mass);
  row.set("target_share", head, share);
  row.set("target_entropy", head, entropy);
}

/// The rows of a, then those of b.
Array joined(const Array& a, const Array& b) {
  Array result(b.shape().with(0, a.dim(0) + b.dim(0)), b.dtype());
  const auto bytes = static_cast<std::size_t>(a.bytes());
  if (bytes > 0) std::memcpy(result.raw(), a.raw(), bytes);
  std::memcpy(static_cast<char*>(result.raw()) + bytes, b.raw(), static_cast<std::size_t>(b.bytes()));
  return result;
}

std::int64_t rows_in(const NamedArrays& arrays) {
  const auto step = arrays.find("step");
  return step == arrays.end() ? 0 : step->second.dim(0);
}

const Metadata explanations{
    {"step", "steps of training done"},
    {"entropy", "-sum A ln A over keys, nats"},
    {"normalised_entropy",
     "entropy / ln of the number of keys that the query may attend to; 0 one key, 1 even"},
    {"effective_keys", "e to the entropy"},
    {"confidence", "the largest weight"},
    {"distance", "sum of weight times |offset|, tokens"},
    {"sink_mass", "weight of key 0, over queries that may attend to it"},
    {"self_mass", "weight of the key at offset 0"},
    {"duplicate_mass", "weight of earlier copies of the query's token, over queries that have one"},
    {"offset_mass", "weight of the key at each offset, over queries that may attend to it"},
    {"offset_share", "share of these queries whose largest weight is there"},
    {"target_mass", "weight of the key that the task names, over the queries that it names"},
    {"target_share", "share of these queries whose largest weight is there"},
    {"target_entropy", "normalised entropy over these queries"},
    {"rows", "one a measurement, see step; each number is a mean over the queries that count"},
};

}  // namespace

HeadWatch::HeadWatch(std::filesystem::path run, std::int64_t every, std::uint64_t seed)
    : run_(std::move(run)), every_(every), seed_(seed) {
  check(every >= 1, "watch", "every {} steps, needs at least 1", every);
}

void HeadWatch::describe(Model& model, const Task& task) {
  metadata_ = explanations;
  metadata_["format"] = format;
  metadata_["every"] = std::to_string(every_);
  metadata_["sequences"] = std::to_string(batch_.size());
  const std::vector<HeadTarget> targets = task.head_targets();
  for (HeadLayer* layer : head_layers(model)) {
    const std::string path = layer->module().path();
    const AttentionSite site = site_of(*layer, model.needs());
    const SiteQuestion& question = questions_.at(site);
    metadata_[path + ".attention"] = name_of(site);
    metadata_[path + ".offsets"] = nlohmann::json(question.telemetry.offsets).dump();
    if (question.targets.empty()) continue;
    nlohmann::json names = nlohmann::json::array();
    for (const std::size_t t : question.targets) names.push_back(targets[t].name);
    metadata_[path + ".targets"] = names.dump();
  }
}

void HeadWatch::on_start(Model& model, const Task& task, std::int64_t first_step, std::int64_t /*steps*/) {
  check(!head_layers(model).empty(), "watch", "the model has no attention heads");
  const std::int64_t size = std::min(watched_sequences, task.held_out_size(HeldOut::score));
  batch_ = task.held_out(seed_, 0, size, HeldOut::score);
  questions_ = site_questions(model, task.head_targets(), batch_);
  for (auto& entry : questions_) {
    if (entry.first == AttentionSite::cross) continue;         // a query has no token among the keys
    if (batch_.inputs.back().dtype() != DType::i64) continue;  // patches are never the same
    entry.second.telemetry.tokens =
        entry.first == AttentionSite::encoder ? batch_.inputs.front() : batch_.inputs.back();
  }
  describe(model, task);
  rows_.clear();
  begin_file(measure(model, first_step), first_step);
}

NamedArrays HeadWatch::measure(Model& model, std::int64_t step) const {
  const Looking looking(model);
  const std::vector<Telemetry> found = layer_telemetry(model, questions_, batch_);
  const std::vector<HeadLayer*> layers = head_layers(model);
  NamedArrays arrays{{"step", Array::of<std::int64_t>({1}, {step})}};
  for (std::size_t i = 0; i < layers.size(); ++i) {
    const SiteQuestion& question = questions_.at(site_of(*layers[i], model.needs()));
    LayerRow row(arrays, layers[i]->module().path(), layers[i]->heads());
    for (std::size_t head = 0; head < found[i].heads.size(); ++head) {
      set_head(row, head, found[i].heads[head], question);
    }
  }
  return arrays;
}

// Keeps the rows up to the first step; `like` is a row of this model. The file says from the start that the
// run is watched, and never has rows of steps that are still to come.
void HeadWatch::begin_file(const NamedArrays& like, std::int64_t first_step) {
  const std::filesystem::path file = RunFolder::open(run_).heads();
  const NamedArrays before = std::filesystem::exists(file) ? read_safetensors(file).arrays : NamedArrays();
  const std::int64_t rows = rows_in(before);
  std::int64_t kept = 0;
  if (rows > 0) {
    const auto steps = before.at("step").values<std::int64_t>();
    kept = std::upper_bound(steps.begin(), steps.end(), first_step) - steps.begin();
  }
  for (const auto& entry : like) {
    if (kept == 0) {
      rows_[entry.first] = entry.second.range(0, 0).copy();
      continue;
    }
    const auto found = before.find(entry.first);
    check(found != before.end(), file.string(), "has no {} of this model", entry.first);
    const Shape want = entry.second.shape().with(0, rows);
    check(found->second.shape() == want && found->second.dtype() == entry.second.dtype(), file.string(),
          "{} is {} {}, of this model it is {} {}", entry.first, name_of(found->second.dtype()),
          found->second.shape(), name_of(entry.second.dtype()), want);
    rows_[entry.first] = found->second.range(0, kept).copy();
  }
  if (kept == 0 || kept < rows) write_safetensors(file, rows_, metadata_);
}

void HeadWatch::on_step(Model& model, const StepReport& report) {
  if (report.step % every_ != 0 && report.step != report.steps) return;
  for (const auto& entry : measure(model, report.step)) {
    Array& array = rows_.at(entry.first);
    array = joined(array, entry.second);
  }
  write_safetensors(RunFolder::open(run_).heads(), rows_, metadata_);
}

void HeadWatch::add_metrics(std::int64_t step, nlohmann::ordered_json& line) {
  const std::int64_t rows = rows_in(rows_);
  if (rows > 0 && rows_.at("step").values<std::int64_t>().back() == step) line["heads_row"] = rows - 1;
}

std::optional<std::int64_t> watched_every(const std::filesystem::path& run) {
  const std::filesystem::path file = RunFolder::open(run).heads();
  std::error_code error;
  if (!std::filesystem::exists(file, error)) return std::nullopt;
  const SafetensorsReader reader(file);
  const auto& metadata = reader.metadata();
  const auto found = metadata.find("format");
  check(found != metadata.end() && found->second == HeadWatch::format, file.string(),
        "is no file of what heads did: its format is not '{}'", HeadWatch::format);
  const auto every = metadata.find("every");
  check(every != metadata.end(), file.string(), "does not say how often heads were watched");
  std::int64_t steps = 0;
  for (const char digit : every->second) {
    check(digit >= '0' && digit <= '9' && steps < 1'000'000'000, file.string(), "watched every '{}' steps",
          every->second);
    steps = 10 * steps + (digit - '0');
  }
  check(steps >= 1, file.string(), "watched every '{}' steps", every->second);
  return steps;
}

}  // namespace headlab
