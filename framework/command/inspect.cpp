#include <algorithm>

#include <nlohmann/json.hpp>

#include "framework/command/head_list.h"
#include "framework/command/inspect_text.h"
#include "framework/command/page_option.h"
#include "framework/command/subcommands.h"
#include "framework/core/check.h"
#include "framework/files/run_folder.h"
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
  PageOption page;
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
  o.page.add(line);
  o.common.add_json(line);
  return line
      .example("headlab inspect runs/offsets", "how sharp each head is, where it looks, which role it has")
      .example("headlab inspect runs/offsets --head 0.3 --example 2", "one attention map")
      .example("headlab inspect sweeps/offsets",
               "the typical run of the fewest heads that do as well as the best; roles over its seeds");
}

/// Knock-outs run half of the held-out set once for every head; of a large model over a text that is too long
/// to wait for.
void add_knockout(const LoadedRun& run, InspectedHeads& found) {
  constexpr double affordable = 5e10;  // some seconds
  const Needs& needs = run.config.needs;
  const double positions = static_cast<double>(run.task->held_out_size(HeldOut::score)) *
                           static_cast<double>(needs.context + needs.source_context);
  const double flops = 2 * needs.parameters() * positions * static_cast<double>(found.analysis.heads.size());
  if (flops <= affordable) {
    found.knockout = knockout_matrix(*run.model, *run.task, run.config.seed);
    found.intact = found.knockout->intact;
  } else {
    found.intact = answers(*run.model, *run.task, run.config.seed);
  }
}

/// Roles of the run, and of the other seeds of its level; untrained heads are the same null for all of them.
InspectedHeads inspected(const LoadedRun& run, const ChosenRun& chosen, const std::string& path,
                         const Catalogue& catalogue) {
  InspectedHeads found;
  found.analysis = analyse_heads(*run.model, *run.task, run.config.seed);
  add_knockout(run, found);
  const UntrainedHeads untrained = untrained_heads([&](const Needs& needs) { return catalogue.build(needs); },
                                                   run.config.needs, *run.task, run.config.seed);
  found.roles = analyse_roles(*run.model, *run.task, run.config.seed, found.analysis, untrained);
  for (const std::filesystem::path& sibling : pick_level(path)) {
    if (sibling == chosen.path) {
      found.seeds.push_back(seed_roles(run.config.seed, found.analysis, found.roles));
      continue;
    }
    // A checkpoint may have been removed to save room.
    if (!std::filesystem::exists(RunFolder::open(sibling).last_checkpoint())) continue;
    const LoadedRun other = load_run(sibling, catalogue);
    if (!other.task) continue;
    const std::uint64_t seed = other.config.seed;
    const HeadAnalysis heads = analyse_heads(*other.model, *other.task, seed);
    found.seeds.push_back(
        seed_roles(seed, heads, analyse_roles(*other.model, *other.task, seed, heads, untrained)));
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
  check(!all_heads(model).empty(), chosen.path.string(), "the model has no attention heads");
  const InspectedHeads found = inspected(run, chosen, *o.run, session.catalogue);
  const nlohmann::json json = heads_json(found, run, chosen);
  o.page.keep(line, session, *o.run, "inspect.json", json);
  o.page.keep_attention(line, session, *o.run, run);
  const std::string page = o.page.write(line, *o.run);
  if (o.common.json) {
    print_json(json);
  } else {
    print_for_people(heads_text(found, run, chosen) + "\n" + page);
  }
  return 0;
}

}  // namespace headlab
