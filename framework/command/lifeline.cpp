#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "framework/command/console.h"
#include "framework/command/lifeline_text.h"
#include "framework/command/page_option.h"
#include "framework/command/subcommands.h"
#include "framework/core/check.h"
#include "framework/heads/matching.h"
#include "framework/sweep/pick.h"

namespace headlab {

namespace {

struct Options {
  CommonOptions common;
  PageOption page;
  std::optional<std::string> run;
  std::optional<std::int64_t> every;
};

CommandLine declare(Options& o) {
  CommandLine line("lifeline", "when in a training each head found its role");
  line.argument("RUN", o.run, "folder of a run; of a sweep, all seeds of its typical head count are taken",
                true);
  line.group("Options");
  line.whole("--every", o.every, {1, 1'000'000'000},
             "train again, to the same bits, and look every so many steps",
             "the run's snapshots, about 20 steps, closer together at the start");
  o.common.add_threads(line);
  o.page.add(line);
  o.common.add_json(line);
  return line
      .example("headlab lifeline runs/induction", "the birth of each role, beside the course of the loss")
      .example("headlab lifeline runs/induction --every 25", "more closely, where it matters")
      .example("headlab lifeline sweeps/offsets", "which roles are born in how many seeds, and when");
}

LifeOfRun life_of_run(const std::filesystem::path& folder, const Catalogue& catalogue,
                      std::optional<std::int64_t> every, std::optional<UntrainedHeads>& untrained) {
  LifeOfRun result;
  LoadedRun run = load_run(folder, catalogue);
  check(!head_layers(*run.model).empty(), folder.string(), "the model has no attention heads");
  const Course course = course_of(run, folder, catalogue, every);
  const ModelBuilder build = [&](const Needs& needs) { return catalogue.build(needs); };
  // The same null for all seeds.
  if (!untrained) untrained = untrained_heads(build, run.config.needs, *run.task, run.config.seed);
  result.life = life_of(*run.model, build, *run.task, run.config.seed, course.moments, *untrained);
  result.loss_steps = course.loss_steps;
  result.losses = course.losses;
  result.loss = change_point(course.losses);
  result.folder = folder;
  result.trained_again = course.trained_again;
  result.run = std::move(run);
  return result;
}

}  // namespace

int lifeline_command(const Session& session) {
  Options o;
  CommandLine line = declare(o);
  if (!ready(line, session, o.common)) return 0;
  const ChosenRun chosen = pick_run(*o.run);
  std::optional<UntrainedHeads> untrained;
  LifeLines lines;
  lines.note = chosen.note;
  for (const std::filesystem::path& folder : pick_level(*o.run)) {
    if (folder == chosen.path) lines.shown = lines.runs.size();
    lines.runs.push_back(life_of_run(folder, session.catalogue, o.every, untrained));
  }
  const LifeOfRun& shown = lines.runs.at(lines.shown);
  for (std::size_t i = 0; i < lines.runs.size(); ++i) {
    if (i == lines.shown) continue;
    const Looking looking(*shown.run.model);
    const Looking looking_at_other(*lines.runs[i].run.model);
    lines.matchings.push_back(
        match_heads(*shown.run.model, *lines.runs[i].run.model, *shown.run.task, shown.run.config.seed));
  }
  const nlohmann::json json = lifeline_json(lines);
  o.page.keep(line, session, *o.run, "lifeline.json", json);
  const std::string page = o.page.write(line, *o.run);
  if (o.common.json) {
    print_json(json);
  } else {
    print_for_people(lifeline_text(lines) + "\n" + page);
  }
  return 0;
}

}  // namespace headlab
