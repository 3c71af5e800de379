#include <filesystem>
#include <system_error>

#include <nlohmann/json.hpp>

#include "framework/command/console.h"
#include "framework/command/head_list.h"
#include "framework/command/interrupt.h"
#include "framework/command/page_option.h"
#include "framework/command/profile_option.h"
#include "framework/command/subcommands.h"
#include "framework/command/training_options.h"
#include "framework/core/check.h"
#include "framework/files/lock.h"
#include "framework/files/run_folder.h"
#include "framework/heads/watch.h"
#include "framework/report/format.h"
#include "framework/train/checkpoint.h"
#include "framework/train/progress.h"
#include "framework/train/run.h"
#include "framework/train/trainer.h"

namespace headlab {

namespace {

struct Options {
  CommonOptions common;
  PageOption page;
  TrainingOptions training;
  std::optional<std::string> name, resume, knockout;
  std::optional<std::int64_t> watch_heads;
  std::int64_t evaluate_every = 0;
  std::int64_t checkpoint_every = 0;
  ProfileOption profile;
};

CommandLine declare(Options& o) {
  CommandLine line("train", "train a model on a task or on a text file");
  line.argument("TASK|FILE", o.name,
                "a task (headlab tasks lists them), or the path of a text file; not needed "
                "with --resume",
                false);
  line.group("The model");
  o.training.declare_model(line, true);
  line.group("The training");
  o.training.declare_training(line);
  line.whole("--eval-every", o.evaluate_every, {0, 1'000'000'000},
             "steps between evaluations on the held-out set; 0: only at the end")
      .whole("--checkpoint-every", o.checkpoint_every, {0, 1'000'000'000},
             "steps between checkpoints; 0: only at the end and when stopped by Ctrl-C")
      .whole("--watch-heads", o.watch_heads, {1, 1'000'000'000},
             "steps between looks at every head, kept in RUN/heads.safetensors",
             "not; with --resume, as before")
      .text("--knockout", "L.H@STEP,…", o.knockout,
            "heads to switch off for good once STEP steps are done; the run remembers it")
      .text("--resume", "RUN", o.resume, "go on with a run that was stopped, with the settings that it has");
  line.group("Everywhere");
  o.common.add_out(line, "runs/TASK");
  o.common.add_seed(line, "decides initial weights, data and dropout");
  o.common.add_threads(line);
  o.profile.add(line, "RUN/profile.json");
  o.page.add(line);
  o.common.add_json(line);
  return line.example("headlab train offsets", "trains with the task's own settings into runs/offsets")
      .example("headlab train offsets --heads 4 --seed 1 --out runs/four-heads", "half as many heads")
      .example("headlab train shakespeare.txt --steps 500", "a small GPT on a text of your own")
      .example("headlab train offsets --knockout 0.3@200", "do other heads take over what head 0.3 did?")
      .example("headlab train induction --watch-heads 10", "keeps what each head does, step by step")
      .example("headlab train --resume runs/offsets", "goes on where Ctrl-C stopped it");
}

/// The task and settings of a run that is to go on.
PlannedTraining plan_resumed(const Catalogue& catalogue, const Options& o) {
  PlannedTraining plan;
  as_usage([&] {
    const RunFolder folder = RunFolder::open(*o.resume);
    plan.config = run_config_from_json(folder.read_config(), folder.config().string());
  });
  const auto given = o.training.first_given();
  if (given)
    throw UsageError(*given + ": cannot be changed with --resume; the run goes on with its settings");
  if (o.knockout) throw UsageError("--knockout: cannot be changed with --resume");
  if (o.common.seed != 0) throw UsageError("--seed: cannot be changed with --resume");
  if (o.common.out) throw UsageError("--out: with --resume the results go where the run is");
  if (o.name && *o.name != plan.config.task) {
    throw UsageError(
        fmt::format("{}: the run is one of '{}', not of '{}'", *o.resume, plan.config.task, *o.name));
  }
  TextOptions text;
  text.context = plan.config.needs.context;
  const auto last = RunFolder::open(*o.resume).last_checkpoint();
  std::error_code error;
  if (std::filesystem::exists(last, error)) text.vocabulary = load_checkpoint(last).vocabulary;
  plan.task = open_task(catalogue, plan.config.task, text);
  if (plan.task->vocabulary() != nullptr && !text.vocabulary &&
      plan.task->needs().streams[0].vocabulary != plan.config.needs.streams[0].vocabulary) {
    // Stopped before its first checkpoint, which would tell the units.
    text.unit = TextUnit::byte;
    plan.task = open_task(catalogue, plan.config.task, text);
  }
  check_memory(plan.config);
  return plan;
}

/// "0.3@500,1.2@0"
std::vector<HeadOff> parse_knockouts(const std::string& text, std::int64_t steps) {
  std::vector<HeadOff> list;
  std::size_t from = 0;
  while (from <= text.size()) {
    const std::size_t comma = std::min(text.find(',', from), text.size());
    const std::string part = text.substr(from, comma - from);
    from = comma + 1;
    const std::size_t at = part.find('@');
    if (at == std::string::npos) {
      throw UsageError(
          fmt::format("--knockout: '{}' is not LAYER.HEAD@STEP, such as 0.3@500", printable(part)));
    }
    const HeadId id = parse_head("--knockout", part.substr(0, at));
    const std::int64_t step = as_usage([&] {
      return parse_whole("--knockout: step", part.substr(at + 1), {0, steps - 1});
    });
    for (const HeadOff& other : list) {
      if (other.layer == id.layer && other.head == id.head)
        throw UsageError(fmt::format("--knockout: {} comes twice", id.str()));
    }
    list.push_back({id.layer, id.head, step});
  }
  return list;
}

/// Makes the folder and keeps other processes out.
FolderLock locked(const std::filesystem::path& run, bool resume) {
  check(!run.empty(), "--out", "the path is empty");
  check(resume || !RunFolder::is_run(run), run.string(),
        "already holds a run; go on with --resume {}, or choose another folder with --out",
        for_shell(run.string()));
  std::error_code error;
  std::filesystem::create_directories(run, error);
  check(!error, run.string(), "cannot make the folder: {}", error.message());
  auto lock = FolderLock::try_lock(run);
  check(lock.has_value(), run.string(), "another process is training in it");
  return std::move(*lock);
}

const char* counted(const Task& task) {
  return task.accuracy() == Accuracy::whole_sequence ? "sequences" : "answers";
}

nlohmann::json as_json(const PlannedTraining& plan, const TrainResult& result, const std::string& run) {
  nlohmann::json json{{"task", plan.config.task},
                      {"steps", result.steps},
                      {"train_loss", nullptr},
                      {"validation_loss", nullptr},
                      {"accuracy", nullptr},
                      {"parameters", result.parameters},
                      {"seconds", result.seconds},
                      {"tokens_per_second", result.tokens_per_second},
                      {"run", run},
                      {"interrupted", result.interrupted}};
  if (!result.losses.empty()) json["train_loss"] = result.train_loss;
  if (!result.interrupted) {
    json["validation_loss"] = result.evaluation.loss;
    json["accuracy"] = result.evaluation.accuracy;
    json["finding"] =
        fmt::format("After {} steps {} of {} held-out {} are right (guessing: {}).", grouped(result.steps),
                    percent(result.evaluation.accuracy), grouped(result.evaluation.scored),
                    counted(*plan.task), percent(plan.task->chance()));
  }
  return json;
}

std::string summary(const PlannedTraining& plan, const TrainResult& result, const std::string& run) {
  const std::string path = for_shell(run);
  std::string text = fmt::format("{}: {} of {} steps in {}", plan.config.task, grouped(result.steps),
                                 grouped(plan.config.recipe.steps), duration(result.seconds));
  text += fmt::format(" ({}, {} parameters, {} heads, seed {})\n",
                      with_unit(result.tokens_per_second, "tokens/s"), grouped(result.parameters),
                      plan.config.needs.heads, plan.config.seed);
  if (!result.losses.empty()) text += fmt::format("  training loss    {:.4f}\n", result.train_loss);
  for (const HeadOff& off : plan.config.heads_off) {
    text += fmt::format("  head {}.{} is off {}\n", off.layer, off.head,
                        off.step == 0 ? "from the start" : fmt::format("from step {} on", grouped(off.step)));
  }
  if (result.interrupted) {
    return text + fmt::format("Stopped; everything is saved in {}. To go on:\n  headlab train --resume {}\n",
                              run, path);
  }
  const Evaluation& e = result.evaluation;
  text += fmt::format("  held-out loss    {:.4f}\n", e.loss);
  text += fmt::format("  accuracy         {}  (guessing: {}; over {} {})\n", fixed(e.accuracy),
                      fixed(plan.task->chance()), grouped(e.scored), counted(*plan.task));
  text += fmt::format("The run is in {}. Next:\n", run);
  if (plan.task->vocabulary() != nullptr) {
    text += fmt::format("  headlab sample {}   lets it write\n", path);
  }
  text += fmt::format("  headlab inspect {}  shows what each head does\n", path);
  return text;
}

}  // namespace

int train_command(const Session& session) {
  Options o;
  CommandLine line = declare(o);
  if (!ready(line, session, o.common)) return 0;
  if (!o.name && !o.resume) {
    throw UsageError(
        "TASK or FILE is missing: headlab train offsets, for example; headlab tasks lists the tasks");
  }
  PlannedTraining plan =
      o.resume ? plan_resumed(session.catalogue, o)
               : plan_training(session.catalogue, *o.name, o.training, {}, o.common.seed_number());
  const std::unique_ptr<Model> model = as_usage([&] { return session.catalogue.build(plan.config.needs); });
  if (o.knockout) {
    plan.config.heads_off = parse_knockouts(*o.knockout, plan.config.recipe.steps);
    as_usage([&] {
      for (const HeadOff& off : plan.config.heads_off) layer_of(*model, {off.layer, off.head});
    });
  }
  const std::string run =
      o.resume
          ? *o.resume
          : o.common.out.value_or(fmt::format("runs/{}", result_name(session.catalogue, plan.config.task)));
  const FolderLock lock = locked(run, o.resume.has_value());

  Progress progress;
  std::vector<Observer*> observers{&progress};
  std::optional<HeadWatch> watch;
  if (!o.watch_heads && o.resume) o.watch_heads = watched_every(run);
  if (o.watch_heads) observers.push_back(&watch.emplace(run, *o.watch_heads, plan.config.seed));
  const Interrupt interrupt;
  o.profile.start();
  const TrainResult result = train(*model, *plan.task, plan.config,
                                   {.run = run,
                                    .resume = o.resume.has_value(),
                                    .evaluate_every = o.evaluate_every,
                                    .checkpoint_every = o.checkpoint_every,
                                    .observers = observers,
                                    .stop = interrupt.flag()});
  const std::string profile = o.profile.finish(std::filesystem::path(run) / "profile.json");
  if (!head_layers(*model).empty()) {
    o.page.keep_attention(line, session, run, *model, *plan.task, plan.config.seed);
  }
  const nlohmann::json json = as_json(plan, result, run);
  o.page.keep_training(line, session, run, json, o.resume.has_value());
  const std::string page = o.page.write(line, run);
  if (o.common.json) {
    print_json(json);
  } else {
    print_for_people(summary(plan, result, run) + page + profile);
  }
  return result.interrupted ? interrupted_status : 0;
}

}  // namespace headlab
