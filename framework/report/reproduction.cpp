#include "framework/report/reproduction.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "framework/files/json_file.h"
#include "framework/report/format.h"
#include "framework/report/table.h"

namespace headlab {
namespace {

int decimals_of(const Claim& claim) {
  switch (claim.measure) {
    case Measure::cover:
    case Measure::distinct_offsets:
    case Measure::distinct_owners:
      return 1;
    case Measure::half_step:
      return 0;
    default:
      return 3;
  }
}

std::string range_of(const Claim& claim) {
  const int decimals = std::min(decimals_of(claim), 2);
  std::string text;
  if (claim.lower && claim.upper) {
    text = fixed(*claim.lower, decimals) + " to " + fixed(*claim.upper, decimals);
  } else if (claim.lower) {
    text = "at least " + fixed(*claim.lower, decimals);
  } else if (claim.upper) {
    text = "at most " + fixed(*claim.upper, decimals);
  }
  if (claim.seeds) text += fmt::format(", {} of seeds", percent(*claim.seeds, 0));
  return text;
}

std::string measured(const ClaimResult& result) {
  const Summary& s = result.summary;
  std::optional<double> half;
  if (s.interval) half = s.interval->half_width();
  return estimate(s.mean, half, decimals_of(result.claim));
}

std::string says(const Claim& claim) {
  return claim.setting.name.empty() ? claim.says : fmt::format("{} ({})", claim.says, claim.setting.name);
}

}  // namespace

std::string verdict(const Reproduction& result) {
  if (result.interrupted) return fmt::format("{}: stopped before all runs were done.", result.task);
  const auto good = std::count_if(result.claims.begin(), result.claims.end(),
                                  [](const ClaimResult& claim) { return claim.holds; });
  return fmt::format(
      "{}: {} of {} claims hold over {} seed{}{}.", result.task, good, result.claims.size(), result.seeds,
      result.seeds == 1 ? "" : "s",
      result.failed > 0 ? fmt::format("; {} of {} runs failed", result.failed, result.runs) : "");
}

std::string reproduction_text(const Reproduction& result, const Terminal& terminal) {
  if (result.interrupted) return verdict(result) + "\n";
  Table table({{"claim"}, {"heads", Align::right}, {"measured", Align::right}, {"range"}, {"seeds"}, {""}});
  table.title(fmt::format("{}: {} runs", result.task, result.runs));
  const std::string* setting = nullptr;
  for (const ClaimResult& claim : result.claims) {
    if (setting != nullptr && *setting != claim.claim.setting.name) table.rule();
    setting = &claim.claim.setting.name;
    table.row({says(claim.claim), claim.claim.setting.pooled ? "none" : grouped(claim.heads), measured(claim),
               range_of(claim.claim), fmt::format("{} of {}", claim.in_range, claim.values.size()),
               claim.holds ? "holds" : "FAILS"});
  }
  table.note(
      "measured: mean and 95 % t interval over seeds; the mean must be in the range, or, where it says so,");
  table.note("that many seeds by themselves. seeds: how many are in the range by themselves.");
  return table.str(terminal) + verdict(result) + "\n";
}

nlohmann::json reproduction_json(const Reproduction& result) {
  nlohmann::json claims = nlohmann::json::array();
  for (const ClaimResult& c : result.claims) {
    nlohmann::json values = nlohmann::json::array();
    for (const std::optional<double>& value : c.values) values.push_back(or_null(value));
    nlohmann::json interval;
    if (c.summary.interval) interval = {c.summary.interval->low, c.summary.interval->high};
    claims.push_back({{"says", c.claim.says},
                      {"setting", c.claim.setting.name},
                      {"heads", c.heads},
                      {"minus", or_null(c.claim.minus)},
                      {"lower", or_null(c.claim.lower)},
                      {"upper", or_null(c.claim.upper)},
                      {"needs_seeds", or_null(c.claim.seeds)},
                      {"values", values},
                      {"mean", or_null(c.summary.mean)},
                      {"ci95", interval},
                      {"in_range", c.in_range},
                      {"holds", c.holds}});
  }
  return {{"task", result.task},     {"seeds", result.seeds},   {"runs", result.runs},
          {"failed", result.failed}, {"holds", result.holds()}, {"claims", claims}};
}

}  // namespace headlab
