#include "framework/command/inspect_roles.h"

#include <algorithm>
#include <functional>
#include <map>
#include <set>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "framework/command/session.h"
#include "framework/files/json_file.h"
#include "framework/report/format.h"
#include "framework/report/table.h"

namespace headlab {

namespace {

double needed(const RoleScore& role) { return std::max(role.null.threshold, role.floor); }

/// Of a head without a role: what it comes nearest to, as a share of what is needed.
const RoleScore* nearest(const HeadRoles& head) {
  const RoleScore* best = nullptr;
  const auto share = [](const RoleScore& role) { return role.score / std::max(needed(role), 1e-9); };
  for (const RoleScore& role : head.scores) {
    if (!best || share(role) > share(*best)) best = &role;
  }
  return best;
}

std::vector<std::string> card(const HeadRoles& head, const HeadReport& report, bool several_sites) {
  std::vector<std::string> cells{head.id.str()};
  if (several_sites) cells.front().append(" ").append(name_of(report.site));
  const std::vector<const RoleScore*> held = head.held();
  const RoleScore* shown = held.empty() ? nearest(head) : held.front();
  if (!shown) return {cells.front(), "none", "", "", "", "shows no pattern"};
  cells.push_back(held.empty() ? "none" : shown->name);
  cells.push_back(fixed(shown->score));
  cells.push_back(fixed(shown->null.median));
  cells.push_back(fixed(needed(*shown)));
  std::string also = held.empty() ? fmt::format("nearest: {}", shown->name) : "";
  if (held.empty() && shown->baseline && shown->score > needed(*shown))
    also += fmt::format(", which a fixed offset does in {}", percent(*shown->baseline, 0));
  for (std::size_t i = 1; i < held.size(); ++i)
    also += fmt::format("{}{} {}", i == 1 ? "" : ", ", held[i]->name, fixed(held[i]->score, 2));
  cells.push_back(also);
  return cells;
}

std::vector<std::string> role_names(const RoleAnalysis& roles) {
  std::vector<std::string> names;
  for (const HeadRoles& head : roles.heads) {
    for (const RoleScore* role : head.held()) {
      if (std::count(names.begin(), names.end(), role->name) == 0) names.push_back(role->name);
    }
  }
  return names;
}

/// Lines of at most 100 columns, broken at blanks.
std::string wrapped(const std::string& text) {
  constexpr std::int64_t width = 100;
  std::string lines;
  std::int64_t column = 0;
  std::size_t begin = 0;
  while (begin < text.size()) {
    const std::size_t end = std::min(text.find(' ', begin), text.size());
    const std::string word = text.substr(begin, end - begin);
    const std::int64_t size = display_width(word);
    if (column > 0) {
      const bool fits = column + 1 + size <= width;
      lines.push_back(fits ? ' ' : '\n');
      column = fits ? column + 1 : 0;
    }
    lines += word;
    column += size;
    begin = end + 1;
  }
  return lines;
}

std::optional<double> mean_diversity(const HeadAnalysis& heads) {
  double sum = 0;
  std::int64_t layers = 0;
  for (const LayerReport& layer : heads.layers) {
    if (!layer.diversity) continue;
    sum += *layer.diversity;
    ++layers;
  }
  if (layers == 0) return std::nullopt;
  return sum / static_cast<double>(layers);
}

std::string finding(const RoleAnalysis& roles) {
  const std::vector<std::string> names = role_names(roles);
  const std::int64_t with = roles.heads_with_role();
  if (with == 0) {
    return fmt::format("None of the {} heads has a role that stands above chance.", roles.heads.size());
  }
  const std::string kinds = with == 1           ? ""
                            : names.size() == 1 ? ", all the same"
                                                : fmt::format(", {} different", names.size());
  return fmt::format("{} of {} heads {} a role{}: {}.", with, roles.heads.size(), with == 1 ? "has" : "have",
                     kinds, fmt::join(names, ", "));
}

std::string summary(const HeadAnalysis& heads, const RoleAnalysis& roles) {
  std::string text = finding(roles);
  text +=
      fmt::format(" Specialisation {} (1: one role a head, 0: none)", fixed(roles.mean_specialisation(), 2));
  if (const auto diversity = mean_diversity(heads))
    text += fmt::format("; heads of a layer differ by {} (0: alike, 0.83: never the same key)",
                        fixed(*diversity, 2));
  return fmt::format("{}\n", wrapped(text + "."));
}

/// The pair that composes most in one way, if any does more than chance.
std::string strongest(const RoleAnalysis& roles, std::optional<Composition::Share> Composition::*way,
                      std::string_view says) {
  const Composition* best = nullptr;
  for (const Composition& pair : roles.compositions) {
    if ((pair.*way) && (!best || (pair.*way)->above > (best->*way)->above)) best = &pair;
  }
  if (!best || !(best->*way)->more_than_chance()) return "";
  return fmt::format("  {} {} {} writes: {} (chance: up to {})\n", best->to.str(), says, best->from.str(),
                     with_sign((best->*way)->above), with_sign((best->*way)->chance));
}

std::string circuits(const RoleAnalysis& roles) {
  const std::string lines = strongest(roles, &Composition::key, "looks for what") +
                            strongest(roles, &Composition::query, "asks by what") +
                            strongest(roles, &Composition::value, "passes on what");
  if (lines.empty()) return "";
  return fmt::format(
      "Strongest compositions of a head with a later one, above the mean of random weights:\n{}", lines);
}

SeedValues values_of(const std::vector<SeedRoles>& seeds,
                     const std::function<std::optional<double>(const SeedRoles&)>& f) {
  SeedValues values;
  for (const SeedRoles& seed : seeds) values.push_back(f(seed));
  return values;
}

struct Figure {
  const char* key;
  const char* name;
  Summary summary;
};

std::vector<Figure> figures(const std::vector<SeedRoles>& seeds) {
  const auto of = [&](const auto& f) { return summarise(values_of(seeds, f)); };
  return {
      {"heads_with_role", "heads with a role",
       of([](const SeedRoles& s) { return std::optional<double>(static_cast<double>(s.with_role)); })},
      {"coverage", "different roles",
       of([](const SeedRoles& s) { return std::optional<double>(static_cast<double>(s.coverage)); })},
      {"redundancy", "heads a role",
       of([](const SeedRoles& s) { return std::optional<double>(s.redundancy); })},
      {"specialisation", "specialisation",
       of([](const SeedRoles& s) { return std::optional<double>(s.specialisation); })},
      {"diversity", "diversity", of([](const SeedRoles& s) { return s.diversity; })},
  };
}

std::map<std::string, std::int64_t> seeds_with(const std::vector<SeedRoles>& seeds) {
  std::map<std::string, std::int64_t> counts;
  for (const SeedRoles& seed : seeds) {
    for (const std::string& role : seed.roles) ++counts[role];
  }
  return counts;
}

std::optional<double> half_width(const Summary& summary) {
  return summary.interval ? std::optional(summary.interval->half_width()) : std::nullopt;
}

std::string over_seeds(const std::vector<SeedRoles>& seeds) {
  if (seeds.size() < 2) return "";
  Table table({{"over the seeds"}, {"mean", Align::right}, {"by seed"}});
  const auto row = [&](const Figure& figure, int decimals, const auto& f) {
    std::string each;
    for (const SeedRoles& seed : seeds) {
      const std::optional<double> value = f(seed);
      if (!each.empty()) each.append(" ");
      each.append(value ? fixed(*value, decimals) : std::string("–"));
    }
    table.row({figure.name, estimate(figure.summary.mean, half_width(figure.summary), 2), each});
  };
  const std::vector<Figure> all = figures(seeds);
  using Value = std::optional<double>;
  row(all[0], 0, [](const SeedRoles& s) -> Value { return static_cast<double>(s.with_role); });
  row(all[1], 0, [](const SeedRoles& s) -> Value { return static_cast<double>(s.coverage); });
  row(all[2], 2, [](const SeedRoles& s) -> Value { return s.redundancy; });
  row(all[3], 2, [](const SeedRoles& s) -> Value { return s.specialisation; });
  row(all[4], 2, [](const SeedRoles& s) -> Value { return s.diversity; });
  std::vector<std::pair<std::int64_t, std::string>> order;
  for (const auto& entry : seeds_with(seeds)) order.emplace_back(-entry.second, entry.first);
  std::sort(order.begin(), order.end());
  std::vector<std::string> lines;
  for (const auto& entry : order)
    lines.push_back(fmt::format("{} in {} of {}", entry.second, -entry.first, seeds.size()));
  table.note("± is the 95 % t interval over seeds. Roles that some head has, by seeds:");
  for (std::size_t i = 0; i < lines.size(); i += 4)
    table.note(fmt::format(
        "{}", fmt::join(lines.begin() + static_cast<std::ptrdiff_t>(i),
                        lines.begin() + static_cast<std::ptrdiff_t>(std::min(i + 4, lines.size())), "; ")));
  return fmt::format("\n{}\n{}\n", table.str(output_terminal()), seeds_verdict(seeds));
}

}  // namespace

std::string seeds_verdict(const std::vector<SeedRoles>& seeds) {
  const auto roles = seeds_with(seeds);
  const auto everywhere = std::count_if(roles.begin(), roles.end(),
                                        [&](const auto& entry) { return entry.second == std::ssize(seeds); });
  if (roles.empty()) return fmt::format("In none of {} seeds has a head a role.", seeds.size());
  if (everywhere < std::ssize(roles)) {
    return fmt::format("Of {} roles, {} {} in every one of {} seeds, the others in some.", roles.size(),
                       everywhere, everywhere == 1 ? "grows" : "grow", seeds.size());
  }
  if (everywhere == 1) {
    return fmt::format("The one role there is grows in every one of {} seeds.", seeds.size());
  }
  return fmt::format("All {} roles grow in every one of {} seeds.", everywhere, seeds.size());
}

SeedRoles seed_roles(std::uint64_t seed, const HeadAnalysis& heads, const RoleAnalysis& roles) {
  SeedRoles s;
  s.seed = seed;
  s.heads = std::ssize(roles.heads);
  s.with_role = roles.heads_with_role();
  s.roles = role_names(roles);
  s.coverage = std::ssize(s.roles);
  s.specialisation = roles.mean_specialisation();
  if (s.coverage > 0) s.redundancy = static_cast<double>(s.with_role) / static_cast<double>(s.coverage);
  s.diversity = mean_diversity(heads);
  return s;
}

std::string roles_text(const HeadAnalysis& heads, const RoleAnalysis& roles,
                       const std::vector<SeedRoles>& seeds) {
  std::set<AttentionSite> sites;
  for (const HeadReport& head : heads.heads) sites.insert(head.site);
  Table table({{"head"},
               {"role"},
               {"score", Align::right},
               {"null", Align::right},
               {"needed", Align::right},
               {"also"}});
  for (std::size_t h = 0; h < roles.heads.size(); ++h) {
    if (h > 0 && roles.heads[h - 1].id.layer != roles.heads[h].id.layer) table.rule();
    table.row(card(roles.heads[h], heads.heads[h], sites.size() > 1));
  }
  table.note(
      "score: the head's mean weight on what the role is about (even attention: entropy; copying: of its");
  table.note(
      "weights). null: the median of heads that look elsewhere, or are untrained; needed: more than 99.9 %");
  table.note("of the null, and a floor of 0.4 (even attention: 0.9).");
  std::string text = fmt::format("{}\n{}", table.str(output_terminal()), summary(heads, roles));
  if (std::any_of(roles.heads.begin(), roles.heads.end(), [](const HeadRoles& h) { return h.low_rank; })) {
    text += "Low rank: heads are narrower than the context is long and cannot give every pattern.\n";
  }
  if (roles.in_context) {
    text += fmt::format("In-context score {}: mean loss late in the sequence less that near its start.\n",
                        with_sign(*roles.in_context));
  }
  if (!roles.no_prefix.empty()) text += fmt::format("Not tested: induction ({}).\n", roles.no_prefix);
  if (!roles.no_copying.empty()) text += fmt::format("Not tested: copying ({}).\n", roles.no_copying);
  return text + circuits(roles) + over_seeds(seeds);
}

nlohmann::json roles_json(const HeadRoles& head) {
  nlohmann::json list = nlohmann::json::array();
  for (const RoleScore& role : head.scores) {
    list.push_back({{"kind", name_of(role.kind)},
                    {"name", role.name},
                    {"score", role.score},
                    {"null_median", role.null.median},
                    {"null_threshold", role.null.threshold},
                    {"null_draws", role.null.draws},
                    {"floor", role.floor},
                    {"holds", role.holds},
                    {"strength", role.strength}});
    if (role.baseline) {
      list.back()["relation_accuracy"] = *role.relation_accuracy;
      list.back()["best_fixed_offset"] = *role.baseline;
    }
  }
  nlohmann::json json{{"role", nullptr},
                      {"roles", list},
                      {"specialisation", head.specialisation},
                      {"prefix_matching", or_null(head.prefix_matching)},
                      {"low_rank", head.low_rank},
                      {"weights", nullptr}};
  if (head.main) json["role"] = head.scores[*head.main].name;
  if (head.weights) {
    json["weights"] = {{"qk_stable_rank", head.weights->qk_stable_rank},
                       {"qk_effective_rank", head.weights->qk_effective_rank},
                       {"ov_stable_rank", head.weights->ov_stable_rank},
                       {"ov_effective_rank", head.weights->ov_effective_rank},
                       {"copying", or_null(head.weights->copying)}};
  }
  return json;
}

nlohmann::json model_roles_json(const HeadAnalysis& heads, const RoleAnalysis& roles) {
  nlohmann::json layers = nlohmann::json::array();
  for (std::size_t i = 0; i < roles.layers.size(); ++i) {
    layers.push_back({{"layer", roles.layers[i].layer},
                      {"heads_with_role", roles.layers[i].heads_with_role},
                      {"role_coverage", roles.layers[i].coverage},
                      {"role_redundancy", roles.layers[i].redundancy},
                      {"target_coverage", heads.layers[i].coverage},
                      {"target_redundancy", heads.layers[i].redundancy},
                      {"diversity", or_null(heads.layers[i].diversity)}});
  }
  nlohmann::json pairs = nlohmann::json::array();
  for (const Composition& pair : roles.compositions) {
    nlohmann::json json{{"from", pair.from.str()}, {"to", pair.to.str()}};
    const auto put = [&](const char* way, const std::optional<Composition::Share>& share) {
      json[way] = nullptr;
      if (share) json[way] = {{"above_random", share->above}, {"chance", share->chance}};
    };
    put("query", pair.query);
    put("key", pair.key);
    put("value", pair.value);
    pairs.push_back(std::move(json));
  }
  nlohmann::json absent = nlohmann::json::object();
  if (!roles.no_prefix.empty()) absent["prefix_matching"] = roles.no_prefix;
  if (!roles.no_copying.empty()) absent["copying"] = roles.no_copying;
  return {{"finding", finding(roles)},
          {"layers", layers},
          {"compositions", pairs},
          {"in_context_score", or_null(roles.in_context)},
          {"heads_with_role", roles.heads_with_role()},
          {"specialisation", roles.mean_specialisation()},
          {"untrained_models", roles.untrained_models},
          {"absent", absent}};
}

nlohmann::json seeds_json(const std::vector<SeedRoles>& seeds) {
  if (seeds.size() < 2) return nullptr;
  nlohmann::json json = nlohmann::json::object();
  for (const Figure& figure : figures(seeds)) {
    json[figure.key] = {
        {"n", figure.summary.n}, {"mean", or_null(figure.summary.mean)}, {"low", nullptr}, {"high", nullptr}};
    if (figure.summary.interval) {
      json[figure.key]["low"] = figure.summary.interval->low;
      json[figure.key]["high"] = figure.summary.interval->high;
    }
  }
  json["seeds"] = nlohmann::json::array();
  for (const SeedRoles& seed : seeds) json["seeds"].push_back(seed.seed);
  json["seeds_with_role"] = nlohmann::json::object();
  for (const auto& entry : seeds_with(seeds)) json["seeds_with_role"][entry.first] = entry.second;
  return json;
}

}  // namespace headlab
