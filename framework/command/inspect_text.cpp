#include "framework/command/inspect_text.h"

#include <algorithm>
#include <limits>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "framework/command/console.h"
#include "framework/command/session.h"
#include "framework/report/format.h"
#include "framework/report/heat_map.h"
#include "framework/report/table.h"

namespace headlab {

namespace {

/// The target that the head does most of, if it has any.
std::optional<std::size_t> best_target(const HeadReport& head, const HeadAnalysis& analysis) {
  if (head.clean) return head.clean;
  std::optional<std::size_t> best;
  for (std::size_t i = 0; i < head.targets.size(); ++i) {
    if (head.targets[i].queries == 0 || analysis.targets[i].target.kind != HeadTarget::Kind::key) continue;
    if (!best || head.targets[i].mass > head.targets[*best].mass) best = i;
  }
  return best;
}

std::string header(const LoadedRun& run, const ChosenRun& chosen, const Answers& intact) {
  const Needs& needs = run.config.needs;
  std::string text = chosen.note.empty() ? "" : chosen.note + "\n";
  const bool ragged = !needs.layer_heads.empty();
  const std::string layers = ragged              ? " a layer before some were removed"
                             : needs.layers == 1 ? ""
                                                 : fmt::format(" in each of {} layers", needs.layers);
  text += fmt::format("{}: {}, {} heads{}, d_model {}, seed {}, step {} of {}\n", chosen.path.string(),
                      run.config.task, needs.heads, layers, needs.d_model, run.config.seed, grouped(run.step),
                      grouped(run.config.recipe.steps));
  return text + fmt::format("accuracy {} on {} held-out sequences\n\n",
                            fixed(intact.accuracy(run.task->accuracy())), grouped(intact.sequences));
}

/// The read-out that loses most, "t-3 −0.97".
std::string largest_loss(const KnockoutLoss& loss, const std::vector<std::string>& names) {
  if (loss.readouts.size() < 2) return with_sign(-loss.accuracy);
  const auto worst = std::max_element(loss.readouts.begin(), loss.readouts.end());
  const auto index = static_cast<std::size_t>(worst - loss.readouts.begin());
  return fmt::format("{} {}", names[index], with_sign(-*worst));
}

std::string share_of_targets(const HeadAnalysis& analysis) {
  std::string text = fmt::format("{} of {} heads are clean, for {} of {} targets", analysis.clean_heads,
                                 analysis.heads.size(), analysis.cover, analysis.targets.size());
  std::vector<std::string> without;
  for (const TargetReport& target : analysis.targets) {
    if (target.clean_heads == 0) without.push_back(target.target.name);
  }
  if (!without.empty() && without.size() < analysis.targets.size()) {
    text += fmt::format("; none for {}", fmt::join(without, ", "));
  }
  return text + ".";
}

bool several_sites(const HeadAnalysis& analysis) {
  return std::any_of(analysis.heads.begin(), analysis.heads.end(),
                     [&](const HeadReport& head) { return head.site != analysis.heads.front().site; });
}

nlohmann::json target_json(const HeadReport& head, const HeadAnalysis& analysis) {
  nlohmann::json list = nlohmann::json::array();
  for (std::size_t i = 0; i < head.targets.size(); ++i) {
    const TargetScore& score = head.targets[i];
    if (score.queries == 0) continue;
    const bool is_key = analysis.targets[i].target.kind == HeadTarget::Kind::key;
    nlohmann::json entry{{"name", analysis.targets[i].target.name},
                         {"queries", score.queries},
                         {"normalised_entropy", score.normalised_entropy},
                         {"mass", nullptr},
                         {"relation_accuracy", nullptr}};
    if (is_key) {
      entry["mass"] = score.mass;
      entry["relation_accuracy"] = score.relation;
    }
    list.push_back(std::move(entry));
  }
  return list;
}

nlohmann::json loss_json(const InspectedHeads& found, std::size_t head) {
  if (!found.knockout) return nullptr;
  const KnockoutLoss& loss = found.knockout->heads[head];
  nlohmann::json readouts = nlohmann::json::object();
  for (std::size_t i = 0; i < loss.readouts.size(); ++i)
    readouts[found.knockout->answers[i]] = loss.readouts[i];
  return {{"accuracy", loss.accuracy}, {"readouts", readouts}};
}

std::vector<Column> columns_of(const InspectedHeads& found) {
  std::vector<Column> columns{{"head"}};
  for (const char* name : {"confidence", "entropy", "offset", "share", "distance"}) {
    columns.push_back({name, Align::right});
  }
  if (!found.analysis.targets.empty()) {
    columns.push_back({"target"});
    columns.push_back({"mass", Align::right});
  }
  if (found.knockout) columns.push_back({"without it", Align::right});
  return columns;
}

std::vector<std::string> row_of(const InspectedHeads& found, std::size_t index) {
  const HeadAnalysis& analysis = found.analysis;
  const HeadReport& head = analysis.heads[index];
  std::vector<std::string> cells{head.id.str()};
  if (several_sites(analysis)) cells.front().append(" ").append(name_of(head.site));
  cells.push_back(fixed(head.pattern.confidence));
  cells.push_back(fixed(head.pattern.normalised_entropy));
  cells.push_back(head.best_offset > 0 ? fmt::format("+{}", head.best_offset)
                                       : fmt::format("{}", head.best_offset));
  cells.push_back(percent(head.best_offset_share, 0));
  cells.push_back(fixed(head.pattern.distance, 1));
  if (!analysis.targets.empty()) {
    const auto best = best_target(head, analysis);
    const bool is_key = best && analysis.targets[*best].target.kind == HeadTarget::Kind::key;
    cells.push_back(best ? analysis.targets[*best].target.name + (head.clean ? " *" : "") : "");
    cells.push_back(is_key ? fixed(head.targets[*best].mass) : best ? "even" : "");
  }
  if (found.knockout) cells.push_back(largest_loss(found.knockout->heads[index], found.knockout->answers));
  return cells;
}

}  // namespace

std::string heads_text(const InspectedHeads& found, const LoadedRun& run, const ChosenRun& chosen) {
  const std::vector<HeadReport>& heads = found.analysis.heads;
  Table table(columns_of(found));
  for (std::size_t h = 0; h < heads.size(); ++h) {
    if (h > 0 && heads[h - 1].id.layer != heads[h].id.layer) table.rule();
    table.row(row_of(found, h));
  }
  table.note("entropy: 0 looks at one key, 1 evenly at all. offset: where the largest weight is most often,");
  table.note("0 the query itself, -1 the key before it; share: how often it is there.");
  if (!found.analysis.targets.empty()) {
    table.note(fmt::format("* clean: more than 0.8 of its weight on one target. {}",
                           share_of_targets(found.analysis)));
  }
  if (found.knockout) {
    table.note(fmt::format(
        "without it: what {} when the head is switched off. A head that costs",
        found.knockout->answers.size() < 2 ? "accuracy loses" : "the answer that suffers most loses"));
    table.note("nothing may be one of several that do the same.");
  }
  return header(run, chosen, found.intact) + table.str(output_terminal()) + "\n" +
         roles_text(found.analysis, found.roles, found.seeds) +
         fmt::format(
             "\nNext:\n  headlab inspect {0} --head {1}  draws what one head looks at\n"
             "  headlab lifeline {0}  shows when each role was born\n",
             for_shell(chosen.path.string()), heads.front().id.str());
}

nlohmann::json heads_json(const InspectedHeads& found, const LoadedRun& run, const ChosenRun& chosen) {
  const HeadAnalysis& analysis = found.analysis;
  nlohmann::json heads = nlohmann::json::array();
  for (std::size_t h = 0; h < analysis.heads.size(); ++h) {
    const HeadReport& head = analysis.heads[h];
    heads.push_back({{"head", head.id.str()},
                     {"layer", head.layer},
                     {"attention", name_of(head.site)},
                     {"confidence", head.pattern.confidence},
                     {"entropy", head.pattern.entropy},
                     {"normalised_entropy", head.pattern.normalised_entropy},
                     {"distance", head.pattern.distance},
                     {"best_offset", head.best_offset},
                     {"best_offset_share", head.best_offset_share},
                     {"positional", head.positional},
                     {"sink", head.sink},
                     {"targets", target_json(head, analysis)},
                     {"clean_for", nullptr},
                     {"loss_without", loss_json(found, h)}});
    heads.back().update(roles_json(found.roles.heads[h]));
    if (head.clean) heads.back()["clean_for"] = analysis.targets[*head.clean].target.name;
  }
  nlohmann::json json{{"run", chosen.path.string()},
                      {"chosen_because", chosen.note},
                      {"task", run.config.task},
                      {"seed", run.config.seed},
                      {"step", run.step},
                      {"accuracy", found.intact.accuracy(run.task->accuracy())},
                      {"clean_heads", analysis.clean_heads},
                      {"cover", analysis.cover},
                      {"targets", analysis.targets.size()},
                      {"heads", heads},
                      {"over_seeds", seeds_json(found.seeds)}};
  json.update(model_roles_json(analysis, found.roles));
  return json;
}

std::string map_text(const ExampleMap& map, const ChosenRun& chosen, std::int64_t example) {
  HeatMap drawing;
  drawing.rows = map.weights.dim(0);
  drawing.columns = map.weights.dim(1);
  // A blocked key has a weight of exactly 0.
  for (const float weight : map.weights.values<float>()) {
    drawing.values.push_back(weight == 0 ? std::numeric_limits<double>::quiet_NaN()
                                         : static_cast<double>(weight));
  }
  drawing.row_labels = map.queries;
  drawing.column_labels = map.keys;
  drawing.title = fmt::format("head {} ({}, {} attention), held-out example {}; rows: queries, columns: keys",
                              map.head.str(), map.layer, name_of(map.site), example);
  std::string text = chosen.note.empty() ? "" : chosen.note + "\n";
  text += heat_map(drawing, output_terminal());
  return text;
}

nlohmann::json map_json(const ExampleMap& map, const ChosenRun& chosen) {
  nlohmann::json rows = nlohmann::json::array();
  for (std::int64_t q = 0; q < map.weights.dim(0); ++q) {
    nlohmann::json row = nlohmann::json::array();
    for (std::int64_t k = 0; k < map.weights.dim(1); ++k)
      row.push_back(map.weights.at(q * map.weights.dim(1) + k));
    rows.push_back(std::move(row));
  }
  nlohmann::json targets = nlohmann::json::object();
  for (const ExampleMap::Looked& target : map.targets) targets[target.name] = target.keys;
  return {{"run", chosen.path.string()},
          {"head", map.head.str()},
          {"layer", map.layer},
          {"attention", name_of(map.site)},
          {"queries", map.queries},
          {"keys", map.keys},
          {"weights", rows},
          {"targets", targets}};
}

}  // namespace headlab
