#include "framework/command/lifeline_text.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "framework/command/session.h"
#include "framework/files/json_file.h"
#include "framework/report/format.h"
#include "framework/report/table.h"
#include "framework/sweep/statistics.h"

namespace headlab {

namespace {

/// "76–120": between these two moments.
std::string between(const std::vector<std::int64_t>& steps, std::size_t index) {
  if (index == 0) return fmt::format("{}", steps[0]);
  return fmt::format("{}–{}", steps[index - 1], steps[index]);
}

/// A digit a moment, tenths of the strength; a point where the role does not hold.
std::string strip(const std::vector<double>& strength) {
  std::string text;
  for (const double s : strength)
    text.push_back(s <= 0 ? '.' : static_cast<char>('0' + std::min(static_cast<int>(s * 10), 9)));
  return text;
}

std::string loss_sentence(const LifeOfRun& run) {
  if (!run.loss) return "The course of the loss has no change-point.\n";
  return fmt::format(
      "The loss steps down most around step {}: from a mean of {} to {}, which explains {} of its course.\n",
      grouped(run.loss_steps[run.loss->index]), fixed(run.loss->before, 2), fixed(run.loss->after, 2),
      percent(run.loss->explained, 0));
}

struct Birth {
  SeedValues steps;  // a run; absent: not born
  std::int64_t seeds = 0;
};

std::map<std::string, Birth> births_of(const LifeLines& lines) {
  std::map<std::string, Birth> births;
  for (const LifeOfRun& run : lines.runs) {
    for (const auto& entry : run.life.births) births[entry.first].steps.resize(lines.runs.size());
  }
  for (std::size_t i = 0; i < lines.runs.size(); ++i) {
    for (const auto& entry : lines.runs[i].life.births) {
      Birth& birth = births[entry.first];
      birth.steps[i] = static_cast<double>(lines.runs[i].life.steps[entry.second]);
      ++birth.seeds;
    }
  }
  return births;
}

/// Roles that most seeds have first, then those born first.
std::vector<std::string> in_order(const std::map<std::string, Birth>& births) {
  std::vector<std::string> names;
  for (const auto& entry : births) names.push_back(entry.first);
  std::stable_sort(names.begin(), names.end(), [&](const std::string& a, const std::string& b) {
    const Birth& x = births.at(a);
    const Birth& y = births.at(b);
    if (x.seeds != y.seeds) return x.seeds > y.seeds;
    return *summarise(x.steps).mean < *summarise(y.steps).mean;
  });
  return names;
}

std::string shown_step(const Summary& summary) {
  const auto width = summary.interval ? std::optional(summary.interval->half_width()) : std::nullopt;
  return estimate(summary.mean, width, 0);
}

std::string over_seeds(const LifeLines& lines) {
  if (lines.runs.size() < 2) return "";
  const std::map<std::string, Birth> births = births_of(lines);
  Table table({{"role"}, {"seeds", Align::right}, {"born at step", Align::right}, {"by seed"}});
  const auto row = [&](const std::string& name, const SeedValues& steps, std::int64_t seeds) {
    std::string each;
    for (const std::optional<double>& step : steps) {
      if (!each.empty()) each.append(" ");
      each.append(step ? fixed(*step, 0) : std::string("–"));
    }
    table.row({name, fmt::format("{} of {}", seeds, lines.runs.size()), shown_step(summarise(steps)), each});
  };
  for (const std::string& name : in_order(births)) row(name, births.at(name).steps, births.at(name).seeds);
  SeedValues losses;
  std::int64_t with_change = 0;
  for (const LifeOfRun& run : lines.runs) {
    losses.push_back(run.loss ? std::optional(static_cast<double>(run.loss_steps[run.loss->index]))
                              : std::nullopt);
    with_change += run.loss ? 1 : 0;
  }
  table.rule();
  row("(the loss steps down)", losses, with_change);
  table.note(
      "born: the first of the moments looked at from which some head has the role to the end; ± is the");
  table.note(
      "95 % t interval over seeds that have it. Births are as exact as the moments are close: --every.");
  return fmt::format("\n{}", table.str(output_terminal()));
}

std::string partners(const LifeLines& lines) {
  if (lines.matchings.empty()) return "";
  std::int64_t matched = 0;
  std::int64_t all = 0;
  for (const HeadMatching& matching : lines.matchings) {
    matched += matching.matched();
    all += std::ssize(matching.heads);
  }
  return fmt::format(
      "At the end {} of {} pairings of these heads with a head of another seed are nearer than chance "
      "(√JS).\n",
      matched, all);
}

std::string last_sentence(const LifeLines& lines) {
  const std::map<std::string, Birth> births = births_of(lines);
  if (births.empty()) return "No head has a role at the end, so none was born.\n";
  const std::string name = in_order(births).front();
  const Birth& birth = births.at(name);
  const Summary summary = summarise(birth.steps);
  if (lines.runs.size() > 1) {
    return fmt::format("The role '{}' appears in {} of {} seeds, at step {}.\n", name, birth.seeds,
                       lines.runs.size(), shown_step(summary));
  }
  const RunLife& life = lines.runs[lines.shown].life;
  std::vector<std::pair<std::size_t, std::string>> order;
  for (const auto& entry : life.births) order.emplace_back(entry.second, entry.first);
  std::sort(order.begin(), order.end());
  return fmt::format("First born: {}, at step {}; last: {}, at step {}.\n", order.front().second,
                     between(life.steps, order.front().first), order.back().second,
                     between(life.steps, order.back().first));
}

nlohmann::json change_json(const std::optional<ChangePoint>& change, const std::vector<std::int64_t>& steps) {
  if (!change) return nullptr;
  return {{"step", steps[change->index]},
          {"before", change->before},
          {"after", change->after},
          {"explained", change->explained}};
}

nlohmann::json step_json(const std::optional<std::size_t>& index, const std::vector<std::int64_t>& steps) {
  return index ? nlohmann::json(steps[*index]) : nlohmann::json(nullptr);
}

nlohmann::json head_json(const HeadLife& head, const std::vector<std::int64_t>& steps) {
  nlohmann::json scores = nlohmann::json::array();
  for (const std::optional<double>& score : head.score) scores.push_back(or_null(score));
  nlohmann::json json{{"head", head.id.str()},
                      {"role", nullptr},
                      {"born", step_json(head.born, steps)},
                      {"settled", step_json(head.settled, steps)},
                      {"strength", head.strength},
                      {"score", scores},
                      {"score_change", change_json(head.change, steps)}};
  if (!head.role.empty()) json["role"] = head.role;
  return json;
}

}  // namespace

std::string lifeline_text(const LifeLines& lines) {
  const LifeOfRun& run = lines.runs[lines.shown];
  const RunLife& life = run.life;
  const Needs& needs = run.run.config.needs;
  std::string text = lines.note.empty() ? "" : lines.note + "\n";
  text += fmt::format("{}: {}, {} heads, seed {}, {} moments from step {} to {}{}\n\n", run.folder.string(),
                      run.run.config.task, life.heads.size(), life.seed, life.steps.size(),
                      grouped(life.steps.front()), grouped(life.steps.back()),
                      run.trained_again ? " (trained again)" : "");
  Table table({{"head"},
               {"role at the end"},
               {"born", Align::right},
               {"steepest", Align::right},
               {"settled", Align::right},
               {"life"}});
  for (std::size_t h = 0; h < life.heads.size(); ++h) {
    const HeadLife& head = life.heads[h];
    if (h > 0 && life.heads[h - 1].id.layer != head.id.layer) table.rule();
    std::string name = head.id.str();
    if (needs.architecture == Architecture::encoder_decoder)
      name.append(" ").append(name_of(site_of(layer_of(*run.run.model, head.id), needs)));
    table.row({name, head.role.empty() ? "none" : head.role,
               head.born ? between(life.steps, *head.born) : "–",
               head.change ? between(life.steps, head.change->index) : "–",
               head.settled ? between(life.steps, *head.settled) : "–", strip(head.strength)});
  }
  table.note("born: between these steps the role stands above its null and stays; steepest: where its score");
  table.note("jumps most; settled: from then on the head is matched (√JS) with itself at the end.");
  table.note("life: the role's strength at each moment in tenths, a point where it does not hold; moments:");
  std::string steps;
  for (const std::int64_t step : life.steps) {
    if (steps.size() > 90) {
      table.note(steps);
      steps.clear();
    }
    if (!steps.empty()) steps.append(" ");
    steps.append(fmt::format("{}", step));
  }
  table.note(steps);
  text += table.str(output_terminal());
  return text + "\n" + loss_sentence(run) + partners(lines) + over_seeds(lines) + "\n" + last_sentence(lines);
}

nlohmann::json lifeline_json(const LifeLines& lines) {
  nlohmann::json runs = nlohmann::json::array();
  for (const LifeOfRun& run : lines.runs) {
    nlohmann::json heads = nlohmann::json::array();
    for (const HeadLife& head : run.life.heads) heads.push_back(head_json(head, run.life.steps));
    nlohmann::json births = nlohmann::json::object();
    for (const auto& entry : run.life.births) births[entry.first] = run.life.steps[entry.second];
    runs.push_back({{"run", run.folder.string()},
                    {"seed", run.life.seed},
                    {"steps", run.life.steps},
                    {"heads", heads},
                    {"births", births},
                    {"loss_change", change_json(run.loss, run.loss_steps)},
                    {"trained_again", run.trained_again}});
  }
  nlohmann::json roles = nlohmann::json::array();
  for (const auto& entry : births_of(lines)) {
    const Summary summary = summarise(entry.second.steps);
    roles.push_back({{"role", entry.first},
                     {"seeds", entry.second.seeds},
                     {"born", or_null(summary.mean)},
                     {"low", nullptr},
                     {"high", nullptr}});
    if (!summary.interval) continue;
    roles.back()["low"] = summary.interval->low;
    roles.back()["high"] = summary.interval->high;
  }
  nlohmann::json matchings = nlohmann::json::array();
  for (const HeadMatching& matching : lines.matchings) {
    nlohmann::json list = nlohmann::json::array();
    for (const HeadMatch& match : matching.heads) {
      list.push_back({{"head", match.head.str()},
                      {"partner", nullptr},
                      {"distance", or_null(match.distance)},
                      {"null", or_null(match.null)}});
      if (match.partner) list.back()["partner"] = match.partner->str();
    }
    matchings.push_back(std::move(list));
  }
  std::string finding = last_sentence(lines);
  finding.pop_back();
  return {{"chosen_because", lines.note},
          {"finding", finding},
          {"shown", lines.runs[lines.shown].folder.string()},
          {"runs", runs},
          {"roles", roles},
          {"matchings", matchings}};
}

}  // namespace headlab
