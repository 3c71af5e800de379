#include <algorithm>

#include <nlohmann/json.hpp>

#include "framework/command/console.h"
#include "framework/command/interrupt.h"
#include "framework/command/page_option.h"
#include "framework/command/subcommands.h"
#include "framework/command/sweep_line.h"
#include "framework/command/training_options.h"
#include "framework/core/check.h"
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
};

CommandLine declare(Options& o) {
  CommandLine line("ablate", "compare head counts over several seeds");
  line.argument("TASK|FILE", o.name,
                "a task (headlab tasks lists them), or the path of a text file; offsets unless "
                "given",
                false);
  line.group("What is compared");
  line.whole_list("--heads", o.heads, heads_range, "head counts; each must divide d-model")
      .whole("--seeds", o.seeds, {1, 1000}, "runs of each head count: seeds S to S + N - 1 from --seed S on")
      .whole("--reference", o.reference, heads_range, "the head count that others are compared with",
             "1, or else the fewest");
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
      .example("headlab ablate --json > results.json", "for other programs");
}

AblationOptions plan(const Options& o, const std::string& name, const RunConfig& config,
                     const Session& session) {
  if (o.reference && std::count(o.heads.begin(), o.heads.end(), *o.reference) == 0) {
    throw UsageError(fmt::format("--reference: {} is not among --heads", *o.reference));
  }
  // What a level cannot have (rotary positions need an even head size, say) shows before the first run.
  for (const std::int64_t heads : o.heads) {
    Needs needs = config.needs;
    needs.heads = heads;
    as_usage([&] { session.catalogue.build(needs); });
  }
  AblationOptions options;
  options.base = config;
  options.heads = o.heads;
  options.reference = o.reference;
  options.first_seed = o.common.seed_number();
  options.seeds = o.seeds;
  options.folder = o.common.out.value_or(fmt::format("sweeps/{}", result_name(session.catalogue, name)));
  if (options.folder.empty()) throw UsageError("--out: the path is empty");
  return options;
}

std::string to_go_on(const Session& session) {
  std::string command = "headlab ablate";
  for (const std::string& argument : session.arguments) command.append(" ").append(for_shell(argument));
  return command;
}

/// With the attention of the typical run.
std::string make_page(Options& o, const CommandLine& line, const Session& session,
                      const AblationResult& result) {
  const std::filesystem::path& folder = result.folder;
  o.page.keep(line, session, folder, "results.json", ablation_json(result));
  if (result.picked && !result.interrupted) {
    const LoadedRun run = load_run(folder / result.picked->record.name, session.catalogue);
    if (run.task && !head_layers(*run.model).empty()) o.page.keep_attention(line, session, folder, run);
  }
  return o.page.write(line, folder);
}

}  // namespace

int ablate_command(const Session& session) {
  Options o;
  CommandLine line = declare(o);
  if (!ready(line, session, o.common)) return 0;
  const std::string name = o.name.value_or("offsets");
  const PlannedTraining planned =
      plan_training(session.catalogue, name, o.training, o.heads, o.common.seed_number());
  AblationOptions options = plan(o, name, planned.config, session);

  SweepLine progress;
  const Interrupt interrupt;
  options.stop = interrupt.flag();
  options.progress = [&](const SweepProgress& now) { progress.show(now); };
  AblationResult result;
  try {
    result = run_ablation(*planned.task, session.catalogue, options);
  } catch (...) {
    progress.end();
    throw;
  }
  progress.end();
  write_ablation(result);
  const std::string page = make_page(o, line, session, result);

  const std::string folder = options.folder.string();
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
    print_for_people(fmt::format("To go on:\n  {}\n", to_go_on(session)));
  }
  return result.interrupted ? interrupted_status : 0;
}

}  // namespace headlab
