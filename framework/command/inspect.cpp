#include <algorithm>

#include <nlohmann/json.hpp>

#include "framework/command/head_list.h"
#include "framework/command/inspect_text.h"
#include "framework/command/subcommands.h"
#include "framework/core/check.h"
#include "framework/heads/analyse.h"
#include "framework/heads/answers.h"
#include "framework/heads/example_map.h"
#include "framework/heads/knockout.h"
#include "framework/sweep/pick.h"
#include "framework/train/run.h"

namespace headlab {

namespace {

struct Options {
  CommonOptions common;
  std::optional<std::string> run, head;
  std::int64_t example = 0;
};

CommandLine declare(Options& o) {
  CommandLine line("inspect", "show what each head of a trained model does");
  line.argument("RUN", o.run, "folder of a run; of a sweep, its typical run is taken", true);
  line.group("Options");
  line.text("--head", "L.H", o.head, "draw the attention of head H in layer L (both from 0) on one example")
      .whole("--example", o.example, {0, 1'000'000'000}, "which held-out example to draw; with --head");
  o.common.add_threads(line);
  o.common.add_json(line);
  return line.example("headlab inspect runs/offsets", "a table: how sharp, at which offset, for which target")
      .example("headlab inspect runs/offsets --head 0.3 --example 2", "one attention map")
      .example("headlab inspect sweeps/offsets",
               "the median run of the smallest head count that does as well as "
               "the best");
}

/// Knock-outs run half of the held-out set once for every head; of a large model over a text that is too long
/// to wait for.
InspectedHeads inspected(const LoadedRun& run, HeadAnalysis analysis) {
  constexpr double affordable = 5e10;  // some seconds
  const Needs& needs = run.config.needs;
  const double positions = static_cast<double>(run.task->held_out_size(HeldOut::score)) *
                           static_cast<double>(needs.context + needs.source_context);
  const double flops = 2 * needs.parameters() * positions * static_cast<double>(analysis.heads.size());
  InspectedHeads found{std::move(analysis), {}, {}};
  if (flops <= affordable) {
    found.knockout = knockout_matrix(*run.model, *run.task, run.config.seed);
    found.intact = found.knockout->intact;
  } else {
    found.intact = answers(*run.model, *run.task, run.config.seed);
  }
  return found;
}

}  // namespace

int inspect_command(const Session& session) {
  Options o;
  CommandLine line = declare(o);
  if (!ready(line, session, o.common)) return 0;
  std::optional<HeadId> head;
  if (o.head) head = parse_head("--head", *o.head);
  if (!head && o.example != 0) throw UsageError("--example: goes with --head");

  const ChosenRun chosen = pick_run(*o.run);
  LoadedRun run = load_run(chosen.path, session.catalogue);
  check(run.task != nullptr, *o.run, "the task of this run is needed to look at heads: {}", run.task_error);
  Model& model = *run.model;
  if (head) {
    as_usage([&] { layer_of(model, *head); });
    const ExampleMap map =
        as_usage([&] { return example_map(model, *run.task, run.config.seed, *head, o.example); });
    if (o.common.json) {
      print_json(map_json(map, chosen));
    } else {
      print_for_people(map_text(map, chosen, o.example));
    }
    return 0;
  }
  check(!head_layers(model).empty(), chosen.path.string(), "the model has no attention heads");
  const InspectedHeads found = inspected(run, analyse_heads(model, *run.task, run.config.seed));
  if (o.common.json) {
    print_json(heads_json(found, run, chosen));
  } else {
    print_for_people(heads_text(found, run, chosen));
  }
  return 0;
}

}  // namespace headlab
