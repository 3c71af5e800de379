#include "framework/report/ablation.h"

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "framework/heads/target_score.h"
#include "framework/report/ablation_parts.h"
#include "framework/report/format.h"
#include "framework/report/table.h"

namespace headlab {

using namespace ablation_parts;

namespace {

constexpr std::int64_t most_points = 8;  // seeds that are shown one by one
bool was_tested(const AblationLevel& level) { return level.difference && level.difference->p; }

std::string figures_text(const AblationResult& result, const Terminal& terminal) {
  const Field heads = field(result, "heads", [](const AblationLevel& l) { return grouped(l.heads); });
  std::vector<Field> measured = {
      heads, field(result, "n", [](const AblationLevel& l) { return grouped(l.accuracy.n); }),
      field(result, "accuracy", [](const AblationLevel& l) { return estimate_of(l.accuracy); }),
      field(result, fmt::format("over h={}", result.reference), difference_of),
      field(result, "loss", [](const AblationLevel& l) { return estimate_of(l.loss); })};
  const bool tested = any_level(result, was_tested);
  if (tested) {
    measured.push_back(field(result, "test", test_of));
  }
  const bool prototyped = any_level(result, [](const AblationLevel& l) { return l.prototype.has_value(); });
  if (prototyped) {
    measured.push_back(field(result, "prototype", [](const AblationLevel& l) {
      return l.prototype ? fixed(*l.prototype) : std::string(nothing);
    }));
  }
  std::vector<Field> sizes = {
      field(result, "parameters", [](const AblationLevel& l) { return grouped(l.parameters); }),
      field(result, "d_model", [](const AblationLevel& l) { return grouped(l.d_model); }),
      field(result, "d_head", [](const AblationLevel& l) { return grouped(l.head_size); })};
  if (any_level(result, [](const AblationLevel& l) { return l.low_rank; })) {
    sizes.push_back(field(result, "rank", [](const AblationLevel& l) {
      return l.low_rank ? std::string("low") : std::string(nothing);
    }));
  }
  if (any_level(result, [](const AblationLevel& l) { return l.rate.has_value(); })) {
    sizes.push_back(field(result, "lr", [](const AblationLevel& l) {
      return fmt::format("{}", l.config.recipe.learning_rate);
    }));
  }
  sizes.push_back(field(result, "time", [](const AblationLevel& l) {
    return l.seconds ? duration(*l.seconds) : std::string(nothing);
  }));

  const auto finish = [&](Table table) {
    table.title(fmt::format("Head counts on {}: {} seed{}, {} steps, {}", result.base.task, result.seeds,
                            result.seeds == 1 ? "" : "s", grouped(result.base.recipe.steps), held(result)));
    table.note("± is the 95 % t interval over seeds; differences are paired by seed.");
    if (!tested && result.levels.size() > 1 && result.seeds > 1) {
      table.note("An exact test of the differences needs 7 seeds.");
    }
    if (prototyped)
      table.note("prototype: mean accuracy of a prototype in PyTorch with the task's own settings.");
    note_low_rank(table, result);
    note_rates(table, result);
    return table.str(terminal);
  };
  std::vector<Field> all = measured;
  all.insert(all.end(), sizes.begin(), sizes.end());
  std::string text = finish(table_of(all));
  if (fits(text, terminal)) return text;
  sizes.insert(sizes.begin(), heads);
  return finish(table_of(measured)) + "\n" + table_of(sizes).str(terminal);
}

/// The values of every seed, or their summary where there are too many.
template <class F>
std::string points(const AblationLevel& level, const Summary& summary, int decimals, const F& value) {
  if (std::ssize(level.runs) > most_points) return estimate_of(summary, decimals == 0 ? 1 : decimals);
  std::string text;
  for (const std::optional<RunRecord>& run : level.runs) {
    const std::optional<double> number = run && !run->failure ? value(*run) : std::nullopt;
    if (!text.empty()) text += ' ';
    text += number ? fixed(*number, decimals) : std::string(nothing);
  }
  return text;
}

std::string heads_text(const AblationResult& result, const Terminal& terminal) {
  using Value = std::optional<double>;
  const auto clean = [](const RunRecord& run) {
    return run.figures ? Value(static_cast<double>(run.figures->clean_heads)) : std::nullopt;
  };
  const auto cover = [](const RunRecord& run) {
    return run.figures ? Value(static_cast<double>(run.figures->cover)) : std::nullopt;
  };
  std::vector<Field> fields = {
      field(result, "heads", [](const AblationLevel& l) { return grouped(l.heads); }),
      field(result, "confidence", [](const AblationLevel& l) { return estimate_of(l.confidence, 2); }),
      field(result, "entropy", [](const AblationLevel& l) { return estimate_of(l.normalised_entropy, 2); })};
  const std::size_t targets = result.targets.size();
  if (targets > 0) {
    fields.push_back(field(result, "clean heads",
                           [&](const AblationLevel& l) { return points(l, l.clean_heads, 0, clean); }));
    fields.push_back(field(result, fmt::format("cover of {}", targets),
                           [&](const AblationLevel& l) { return points(l, l.cover, 0, cover); }));
  }
  if (result.seeds > 1 && result.seeds <= most_points) {
    fields.push_back(field(result, "accuracy by seed", [](const AblationLevel& l) {
      return points(l, l.accuracy, 3, [](const RunRecord& run) { return Value(run.accuracy); });
    }));
  }
  Table table = table_of(fields);
  table.title("What the heads became");
  table.note("confidence: the largest weight of a query; entropy: 0 looks at one key, 1 at all alike.");
  if (targets > 0) {
    const bool even = std::any_of(result.targets.begin(), result.targets.end(), [](const HeadTarget& target) {
      return target.kind == HeadTarget::Kind::uniform;
    });
    table.note(fmt::format("clean{}: over {} of a head's weight on one of the task's {} target{}.",
                           result.seeds > 1 && result.seeds <= most_points ? ", seed by seed" : "",
                           clean_mass, targets, targets == 1 ? "" : "s"));
    if (even) {
      table.note(
          fmt::format("Where even attention is a target, entropy over {} is clean too.", clean_entropy));
    }
    table.note("cover: targets that have a clean head.");
  }
  return table.str(terminal);
}

}  // namespace

std::string ablation_text(const AblationResult& result, const Terminal& terminal) {
  std::vector<std::string> parts = {figures_text(result, terminal)};
  if (any_level(result, [](const AblationLevel& l) { return l.confidence.n > 0; })) {
    parts.push_back(heads_text(result, terminal));
  }
  parts.push_back(curves_text(result, terminal));
  parts.push_back(published_text(result, terminal));
  if (result.knockout && result.picked) parts.push_back(knockout_text(result, terminal));
  std::string troubles = failures_text(result, terminal);
  if (result.interrupted) {
    troubles += sentence(
        stopped_text(result.done, result.seeds * std::ssize(result.levels), result.folder, result.choosing),
        terminal);
  }
  parts.push_back(troubles);
  if (const std::string jobs = jobs_of_heads(result); !jobs.empty())
    parts.push_back(sentence(jobs, terminal));
  parts.push_back(sentence(finding(result), terminal));
  std::erase(parts, "");
  return fmt::format("{}", fmt::join(parts, "\n"));
}

}  // namespace headlab
