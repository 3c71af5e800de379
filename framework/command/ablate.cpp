#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "framework/command/console.h"
#include "framework/command/grid_option.h"
#include "framework/command/interrupt.h"
#include "framework/command/page_option.h"
#include "framework/command/subcommands.h"
#include "framework/command/sweep_line.h"
#include "framework/command/training_options.h"
#include "framework/core/check.h"
#include "framework/core/suggest.h"
#include "framework/report/ablation.h"
#include "framework/report/format.h"
#include "framework/sweep/ablation.h"

namespace headlab {

namespace {

struct Options {
  CommonOptions common;
  PageOption page;
  TrainingOptions training;
  std::optional<std::string> name;
  std::vector<std::int64_t> heads{1, 4, 8, 16};
  std::int64_t seeds = 5;
  std::optional<std::int64_t> reference;
  std::optional<std::string> hold, grid;
  std::vector<double> rates;
};

std::vector<std::string> numbers_of_a_grid() {
  std::vector<std::string> names;
  for (const TrainingNumber& number : training_numbers()) names.push_back(number.name);
  return names;
}

CommandLine declare(Options& o) {
  CommandLine line("ablate", "compare head counts over several seeds");
  line.argument("TASK|FILE", o.name,
                "a task (headlab tasks lists them), or the path of a text file; offsets unless "
                "given",
                false);
  line.group("What is compared");
  line.whole_list("--heads", o.heads, heads_range, "head counts")
      .whole("--seeds", o.seeds, {1, 1000}, "runs of each head count: seeds S to S + N - 1 from --seed S on")
      .whole("--reference", o.reference, heads_range, "the head count that others are compared with",
             "1, or else the fewest")
      .text("--hold", "WHAT", o.hold,
            "what stays as heads change. d_model: heads share it, so more are smaller, and each count must "
            "divide it. d_head: heads keep their size (--d-head, or what the task gives a head) at the same "
            "d_model, so more are more parameters. parameters: heads keep their size, and d_model is chosen "
            "so that the number of parameters is the nearest to the task's",
            "d_model")
      .text("--grid", "OPTION=V,V,…", o.grid,
            fmt::format("a second factor: every head count at every value of another option ({})",
                        fmt::join(numbers_of_a_grid(), ", ")))
      .real_list("--choose-lr", o.rates, learning_rate_range,
                 fmt::format("learning rates to choose from, for each head count by the loss on {} seeds of "
                             "their own (S + {} on), which are not reported",
                             choosing_seeds, choosing_seeds_from));
  line.group("The model");
  o.training.declare_model(line, false);
  line.group("The training");
  o.training.declare_training(line);
  line.group("Everywhere");
  o.common.add_out(line, "sweeps/TASK");
  o.common.add_seed(line, "the first seed");
  o.common.add_threads(line);
  o.page.add(line);
  o.common.add_json(line);
  return line
      .example("headlab ablate offsets --heads 1,4,8,16 --seeds 5",
               "20 trainings; the same command again goes on where it was stopped")
      .example("headlab ablate roles --heads 1,2,4 --seeds 7", "with seven seeds differences can be tested")
      .example("headlab ablate offsets --hold d_head --grid d-head=8,16 --heads 1,2,4,8 --steps 400",
               "heads that keep their size, at two sizes: where parameters are equal, more heads win")
      .example("headlab ablate roles --choose-lr 0.003,0.01", "a fair learning rate for every head count")
      .example("headlab ablate --json > results.json", "for other programs");
}

Hold hold_of(const Options& o) {
  if (!o.hold) return Hold::d_model;
  std::string name = *o.hold;
  std::replace(name.begin(), name.end(), '-', '_');
  if (const std::optional<Hold> hold = hold_named(name)) return *hold;
  const std::vector<std::string> names{"d_model", "d_head", "parameters"};
  throw UsageError(fmt::format("--hold: '{}' is not one of {}{}", printable(*o.hold), fmt::join(names, ", "),
                               did_you_mean(name, names)));
}

/// What the options ask for; `values` is empty without a grid.
struct Plan {
  AblationOptions options;
  std::shared_ptr<const Task> task;
  std::string option;
  std::vector<GridValue> values;
};

/// One value's training, with every level checked: what a level cannot have (rotary positions need an even
/// head size, say) shows before the first run.
PlannedTraining plan_levels(const Options& o, const TrainingOptions& training, const std::string& name,
                            Hold hold, const Session& session) {
  const bool shared = hold == Hold::d_model;
  PlannedTraining planned =
      plan_training(session.catalogue, name, training, shared ? o.heads : std::vector<std::int64_t>{},
                    o.common.seed_number());
  for (const std::int64_t heads : o.heads) {
    as_usage([&] {
      RunConfig config = planned.config;
      config.needs = needs_at(config.needs, hold, heads);
      check_memory(config);
      session.catalogue.build(config.needs);
    });
  }
  return planned;
}

Plan plan(const Options& o, const std::string& name, const Session& session) {
  if (o.reference && std::count(o.heads.begin(), o.heads.end(), *o.reference) == 0) {
    throw UsageError(fmt::format("--reference: {} is not among --heads", *o.reference));
  }
  Plan plan;
  AblationOptions& options = plan.options;
  options.hold = hold_of(o);
  GridOption grid;
  if (o.grid) grid = parse_grid(*o.grid, o.training);
  if (options.hold == Hold::d_model && (o.training.head_size || grid.name == "d-head")) {
    throw UsageError("--d-head: goes with --hold d_head or --hold parameters; otherwise heads share d-model");
  }
  if (!o.rates.empty() && (o.training.learning_rate || grid.name == "lr")) {
    throw UsageError("--choose-lr: chooses what --lr or --grid lr=… gives; leave one of them out");
  }
  for (const GridOption::Value& value : grid.values) {
    const PlannedTraining planned = plan_levels(o, value.training, name, options.hold, session);
    plan.values.push_back({value.setting, planned.task, planned.config});
  }
  plan.option = grid.name;
  if (plan.values.empty()) {
    const PlannedTraining planned = plan_levels(o, o.training, name, options.hold, session);
    plan.task = planned.task;
    options.base = planned.config;
  }
  options.heads = o.heads;
  options.reference = o.reference;
  options.first_seed = o.common.seed_number();
  options.seeds = o.seeds;
  options.rates = o.rates;
  options.folder = o.common.out.value_or(fmt::format("sweeps/{}", result_name(session.catalogue, name)));
  if (options.folder.empty()) throw UsageError("--out: the path is empty");
  return plan;
}

/// With the attention of the typical run.
template <class Result>
std::string make_page(Options& o, const CommandLine& line, const Session& session, const Result& result,
                      const std::filesystem::path& folder) {
  if (result.picked && !result.interrupted) {
    const LoadedRun run = load_run(folder / result.picked->record.name, session.catalogue);
    if (run.task && !head_layers(*run.model).empty()) o.page.keep_attention(line, session, folder, run);
  }
  return o.page.write(line, folder);
}

/// Writes the files and says what was found; the exit status.
template <class Result>
int report(const Result& result, Options& o, const CommandLine& line, const Session& session,
           const std::filesystem::path& in) {
  write_ablation(result, made_by(line, session));
  const std::string page = make_page(o, line, session, result, in);
  const std::string folder = in.string();
  if (o.common.json) {
    print_json(ablation_json(result));
  } else if (!result.interrupted) {
    print(ablation_text(result, output_terminal()));
    print_for_people(
        fmt::format("\nRuns and results.json, results.csv are in {}. Next:\n  headlab inspect {}  shows "
                    "what each head does\n",
                    folder, for_shell(folder)) +
        page);
  } else {
    print(result.done > 0 ? ablation_text(result, output_terminal()) + "\n"
                          : "Stopped before a run was done.\n");
    print_for_people(fmt::format("To go on:\n  {}\n", typed_again(line, session)));
  }
  return result.interrupted ? interrupted_status : 0;
}

}  // namespace

int ablate_command(const Session& session) {
  Options o;
  CommandLine line = declare(o);
  if (!ready(line, session, o.common)) return 0;
  Plan planned = plan(o, o.name.value_or("offsets"), session);

  SweepLine progress;
  const Interrupt interrupt;
  planned.options.stop = interrupt.flag();
  planned.options.progress = [&](const SweepProgress& now) { progress.show(now); };
  const auto finished = [&](const auto& run) {
    try {
      auto result = run();
      progress.end();
      return result;
    } catch (...) {
      progress.end();
      throw;
    }
  };
  const AblationOptions& options = planned.options;
  if (planned.values.empty()) {
    const AblationResult result =
        finished([&] { return run_ablation(*planned.task, session.catalogue, options); });
    return report(result, o, line, session, options.folder);
  }
  const AblationGrid grid =
      finished([&] { return run_ablation_grid(session.catalogue, planned.option, planned.values, options); });
  return report(grid, o, line, session, options.folder);
}

}  // namespace headlab
