#include "framework/command/prune_text.h"

#include <numeric>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "framework/command/console.h"
#include "framework/command/session.h"
#include "framework/files/json_file.h"
#include "framework/report/format.h"
#include "framework/report/table.h"

namespace headlab {

namespace {

std::string heads_by_layer(const HeadList& heads) {
  std::vector<std::string> names;
  for (const HeadId id : heads) names.push_back(id.str());
  if (names.size() <= 16) return fmt::format("{}", fmt::join(names, ", "));
  return fmt::format("{} and {} more", fmt::join(names.begin(), names.begin() + 14, ", "), names.size() - 14);
}

double random_mean(const Pruning& p) {
  const double sum = std::accumulate(p.random_accuracy.begin(), p.random_accuracy.end(), 0.0);
  return sum / static_cast<double>(p.random_accuracy.size());
}

double kept_share(const Pruning& p, Accuracy kind) {
  const double intact = p.intact.accuracy(kind);
  return intact > 0 ? p.pruned.accuracy(kind) / intact : 1;
}

/// The finding in a sentence.
std::string sentence(const Pruning& p, Accuracy kind) {
  std::string text = fmt::format("{} of {} heads keep {} of the accuracy ({} of {})", p.kept.size(),
                                 p.all.size(), percent(kept_share(p, kind)), fixed(p.pruned.accuracy(kind)),
                                 fixed(p.intact.accuracy(kind)));
  if (!p.random_accuracy.empty()) {
    text += fmt::format("; as many chosen at random are right in {} on average, {} at best of {}",
                        fixed(random_mean(p)), fixed(p.random_accuracy.back()), p.random_accuracy.size());
  }
  return text + ".";
}

}  // namespace

std::string prune_text(const Pruning& p, const LoadedRun& run, const ChosenRun& chosen) {
  std::string text = chosen.note.empty() ? "" : chosen.note + "\n";
  text += fmt::format("{}: {} of {} heads stay: {}\n\n", chosen.path.string(), p.kept.size(), p.all.size(),
                      heads_by_layer(p.kept));
  const Accuracy kind = run.task->accuracy();
  const auto count = [](double n) { return grouped(std::llround(n)); };
  Table table({{""}, {"before", Align::right}, {"after", Align::right}});
  table.row({"heads", grouped(std::ssize(p.all)), grouped(std::ssize(p.kept))});
  table.row({"parameters", count(p.intact_parameters), count(p.parameters)});
  table.row({"accuracy", fixed(p.intact.accuracy(kind)), fixed(p.pruned.accuracy(kind))});
  table.row({"held-out loss", fixed(p.intact.loss, 4), fixed(p.pruned.loss, 4)});
  table.row({"time", duration(p.whole_seconds), duration(p.seconds)});
  table.note(fmt::format("over {} held-out sequences; loss added {}.", grouped(p.intact.sequences),
                         estimate(p.loss.loss, p.loss.interval, 4, true)));
  text += table.str(output_terminal()) + "\n";
  if (p.learned) {
    text += fmt::format("Gates were learned with the weights as they are; {} would be open on average.\n",
                        fixed(p.learned->open, 1));
  }
  if (p.kept.size() == p.all.size()) {
    text += fmt::format("Every head stays{}.\n", p.learned ? ": no gate has shut; try a larger LAMBDA" : "");
  } else {
    text += fmt::format("The heads are gone: the model is {}× as fast.\n", fixed(p.times_as_fast(), 2));
  }
  text += fmt::format("Its logits equal those of the gated model to {:.1e} of the largest ({}).\n",
                      p.relative_difference(), fixed(p.largest_logit, 1));
  text += fmt::format("{}\nThe smaller model is {}. Next:\n", sentence(p, kind), p.file);
  return text + fmt::format("  headlab inspect {}  shows what is left\n", for_shell(p.file));
}

nlohmann::json prune_json(const Pruning& p, const LoadedRun& run, const ChosenRun& chosen) {
  using Json = nlohmann::json;
  const Accuracy kind = run.task->accuracy();
  Json kept = Json::array(), gates = Json::object(), importance = Json::object();
  for (const HeadId id : p.kept) kept.push_back(id.str());
  for (std::size_t h = 0; h < p.all.size(); ++h) gates[p.all[h].str()] = p.gates[h];
  for (std::size_t h = 0; h < p.importance.size(); ++h) importance[p.all[h].str()] = p.importance[h];
  Json random;
  if (!p.random_accuracy.empty()) {
    random = {{"n", p.random_accuracy.size()},
              {"mean", random_mean(p)},
              {"best", p.random_accuracy.back()},
              {"values", p.random_accuracy}};
  }
  return {{"run", chosen.path.string()},
          {"chosen_because", chosen.note},
          {"keep", or_null(p.keep)},
          {"lambda", or_null(p.lambda)},
          {"finding", sentence(p, kind)},
          {"heads", {{"before", p.all.size()}, {"after", p.kept.size()}}},
          {"kept", kept},
          {"gates", gates},
          {"importance", p.importance.empty() ? Json() : importance},
          {"parameters", {{"before", p.intact_parameters}, {"after", p.parameters}}},
          {"accuracy", {{"before", p.intact.accuracy(kind)}, {"after", p.pruned.accuracy(kind)}}},
          {"accuracy_kept", kept_share(p, kind)},
          {"accuracy_at_random", random},
          {"loss", {{"before", p.intact.loss}, {"after", p.pruned.loss}}},
          {"loss_added", p.loss.loss},
          {"interval", or_null(p.loss.interval)},
          {"sequences", p.intact.sequences},
          {"seconds", {{"before", p.whole_seconds}, {"after", p.seconds}}},
          {"times_as_fast", p.times_as_fast()},
          {"largest_logit", p.largest_logit},
          {"largest_logit_difference", p.largest_difference},
          {"relative_logit_difference", p.relative_difference()},
          {"file", p.file}};
}

}  // namespace headlab
