#include "framework/sweep/reproduce.h"

#include <algorithm>
#include <chrono>

#include <nlohmann/json.hpp>

#include "framework/command/console.h"
#include "framework/command/interrupt.h"
#include "framework/command/subcommands.h"
#include "framework/command/sweep_line.h"
#include "framework/core/check.h"
#include "framework/core/suggest.h"
#include "framework/report/format.h"
#include "framework/report/reproduction.h"

namespace headlab {

namespace {

struct Options {
  CommonOptions common;
  std::vector<std::string> names;
  std::int64_t seeds = 5;
};

CommandLine declare(Options& o) {
  CommandLine line("reproduce", "train what the tasks claim, and say which claims hold");
  line.arguments("TASK...", o.names, "tasks (headlab tasks lists them); all that make claims unless given");
  line.group("Options");
  line.whole("--seeds", o.seeds, {1, 1000}, "runs of each head count, from seed 0 on; claims speak of 5");
  o.common.add_out(line, "reproductions");
  o.common.add_threads(line);
  o.common.add_json(line);
  return line.example("headlab reproduce offsets", "the ladder of head counts, a minute or less")
      .example("headlab reproduce", "every claim of every task, some minutes; exit status 1 if one fails");
}

std::vector<std::shared_ptr<const Task>> chosen(const Catalogue& catalogue,
                                                const std::vector<std::string>& names) {
  std::vector<std::shared_ptr<const Task>> tasks;
  std::vector<std::string> known;
  for (const auto& task : catalogue.tasks()) {
    if (task->claims().empty()) continue;
    known.push_back(task->name());
    if (names.empty()) tasks.push_back(task);
  }
  for (const std::string& name : names) {
    const auto task = catalogue.find(name);
    if (!task)
      throw UsageError(fmt::format("there is no task '{}'{}", printable(name), did_you_mean(name, known)));
    if (task->claims().empty()) throw UsageError(fmt::format("{} makes no claims", name));
    if (std::count(tasks.begin(), tasks.end(), task) > 0) throw UsageError(name + ": given twice");
    tasks.push_back(task);
  }
  if (tasks.empty()) throw UsageError("no task here makes claims");
  return tasks;
}

}  // namespace

int reproduce_command(const Session& session) {
  Options o;
  CommandLine line = declare(o);
  if (!ready(line, session, o.common)) return 0;
  const auto tasks = chosen(session.catalogue, o.names);
  const std::filesystem::path folder = o.common.out.value_or("reproductions");
  if (folder.empty()) throw UsageError("--out: the path is empty");

  const auto begin = std::chrono::steady_clock::now();
  const Interrupt interrupt;
  std::vector<Reproduction> results;
  for (const auto& task : tasks) {
    SweepLine progress(task->name() + ": ");
    ReproduceOptions options;
    options.seeds = o.seeds;
    options.folder = folder / task->name();
    options.stop = interrupt.flag();
    options.progress = [&](const SweepProgress& now) { progress.show(now); };
    try {
      results.push_back(reproduce(*task, session.catalogue, options));
    } catch (...) {
      progress.end();
      throw;
    }
    progress.end();
    if (!o.common.json) print(reproduction_text(results.back(), output_terminal()) + "\n");
    flush_output();
    if (results.back().interrupted) break;
  }
  const bool interrupted = results.back().interrupted;
  const bool all = !interrupted && std::all_of(results.begin(), results.end(),
                                               [](const Reproduction& result) { return result.holds(); });
  if (o.common.json) {
    nlohmann::json json = nlohmann::json::array();
    for (const Reproduction& result : results) json.push_back(reproduction_json(result));
    print_json({{"holds", all}, {"interrupted", interrupted}, {"tasks", json}});
  } else if (interrupted) {
    print_for_people(fmt::format("To go on:\n  {}\n", typed_again(line, session)));
  } else {
    std::string text;
    if (results.size() > 1) {
      for (const Reproduction& result : results) text += verdict(result) + "\n";
    }
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
    text +=
        fmt::format("{} in {}; the runs are in {}.\n", all ? "Every claim holds" : "Not every claim holds",
                    duration(seconds.count()), folder.string());
    print_for_people(text);
  }
  if (interrupted) return interrupted_status;
  return all ? 0 : 1;
}

}  // namespace headlab
