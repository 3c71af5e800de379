#include <algorithm>
#include <chrono>
#include <system_error>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "framework/command/console.h"
#include "framework/command/page_option.h"
#include "framework/command/prune_text.h"
#include "framework/command/subcommands.h"
#include "framework/core/check.h"
#include "framework/core/random.h"
#include "framework/heads/importance.h"
#include "framework/heads/knockout.h"
#include "framework/sweep/pick.h"
#include "framework/train/checkpoint.h"
#include "framework/train/run.h"

namespace headlab {

namespace {

constexpr std::size_t random_choices = 20;

struct Options {
  CommonOptions common;
  PageOption page;
  std::optional<std::string> run, out;
  std::optional<double> keep, gates;
  std::int64_t steps = 300;
};

CommandLine declare(Options& o) {
  CommandLine line("prune", "remove heads of a trained model for good, and save what is left");
  line.argument("RUN", o.run, "folder of a run; of a sweep, its typical run is taken", true);
  line.group("How many heads stay (one of them)");
  line.real("--keep", o.keep, {.min = 0, .max = 1, .above_min = true},
            "share of all heads that stays, rounded up: the most important (Michel et al. 2019)")
      .real("--gates", o.gates, {0, 1000},
            "LAMBDA: what an open gate costs, in nats; gates are learned (Hard-Concrete, Voita et al. 2019) "
            "and heads whose gate shuts go")
      .whole("--steps", o.steps, {1, 1'000'000},
             "steps in which gates are learned; weights stay as they are");
  line.group("Everywhere");
  line.text("--out", "FILE", o.out, "file for the smaller model", "RUN/pruned.safetensors");
  o.common.add_threads(line);
  o.page.add(line);
  o.common.add_json(line);
  return line.example("headlab prune runs/induction --keep 0.5", "the more important half of the heads")
      .example("headlab prune runs/induction --gates 0.02", "lets the model choose how many it needs")
      .example("headlab inspect runs/induction/pruned.safetensors",
               "looks at what is left; knockout and sample take the file, too");
}

struct Timed {
  double seconds = 0;
  std::vector<Array> logits;
};

/// Logits of the whole half that is scored; the time is the shortest so far.
void time_logits(Model& model, const std::vector<Batch>& batches, Timed& into) {
  const Looking looking(model);
  into.logits.clear();
  const auto begin = std::chrono::steady_clock::now();
  for (const Batch& batch : batches) into.logits.push_back(model.logits(batch).value());
  const std::chrono::duration<double> time = std::chrono::steady_clock::now() - begin;
  into.seconds = into.seconds > 0 ? std::min(into.seconds, time.count()) : time.count();
}

/// Accuracies with as many heads, chosen at random over the whole model.
std::vector<double> at_random(const LoadedRun& run, const Pruning& p) {
  std::vector<HeadList> off;
  for (std::size_t i = 0; i < random_choices && p.kept.size() < p.all.size(); ++i) {
    Random random(run.config.seed, Stream::statistics, hash(hash("prune"), i));
    HeadList set;
    const auto order = random.permutation(std::ssize(p.all));
    for (std::size_t h = p.kept.size(); h < p.all.size(); ++h) {
      set.push_back(p.all[static_cast<std::size_t>(order[h])]);
    }
    off.push_back(std::move(set));
  }
  std::vector<double> accuracies;
  const KnockoutRuns runs =
      answers_without_each(*run.model, *run.task, run.config.seed, off, {.sequences = 256});
  for (const Answers& answers : runs.answers) accuracies.push_back(answers.accuracy(run.task->accuracy()));
  std::sort(accuracies.begin(), accuracies.end());
  return accuracies;
}

void choose(const Options& o, const LoadedRun& run, Pruning& p) {
  Model& model = *run.model;
  p.all = all_heads(model);
  p.gates.assign(p.all.size(), 1);
  if (o.keep) {
    const Importance importance =
        head_importance(model, *run.task, run.config.seed, {.part = HeldOut::choose});
    p.keep = o.keep;
    p.importance = values_of(importance, ImportanceForm::example);
    p.kept = most_important(model, p.importance, *o.keep);
  } else {
    p.lambda = o.gates;
    p.learned = learn_gates(model, *run.task, run.config.seed,
                            {.lambda = *o.gates,
                             .steps = o.steps,
                             .batch = run.config.recipe.batch,
                             .first_batch = run.config.recipe.steps});
    p.gates = p.learned->gates;
    for (std::size_t h = 0; h < p.all.size(); ++h) {
      if (p.gates[h] > 0) p.kept.push_back(p.all[h]);
    }
  }
  check(!p.kept.empty(), "--gates", "every gate has shut at {}; try a smaller LAMBDA", o.gates.value_or(0));
  for (std::size_t h = 0; h < p.all.size(); ++h) {
    if (std::find(p.kept.begin(), p.kept.end(), p.all[h]) == p.kept.end()) p.gates[h] = 0;
  }
}

/// Builds the smaller model, compares it with the gated one, and saves it.
void finish(const Session& session, const LoadedRun& run, Pruning& p) {
  Model& model = *run.model;
  const Task& task = *run.task;
  const std::uint64_t seed = run.config.seed;
  std::vector<Batch> batches;
  const std::int64_t size = task.held_out_size(HeldOut::score);
  for (std::int64_t first = 0; first < size; first += 64) {
    batches.push_back(task.held_out(seed, first, std::min<std::int64_t>(64, size - first), HeldOut::score));
  }
  const PrunedModel smaller = pruned(model, p.kept, p.gates);
  const std::unique_ptr<Model> small = session.catalogue.build(smaller.needs);
  small->load_state(smaller.state);
  small->eval();
  p.intact = answers(model, task, seed);
  p.random_accuracy = at_random(run, p);
  Timed before;
  Timed after;
  for (int i = 0; i < 7; ++i) {  // by turns: a busy machine is so for both
    time_logits(model, batches, before);
    time_logits(*small, batches, after);
  }
  p.whole_seconds = before.seconds;
  p.seconds = after.seconds;
  {
    const HeadGates gated(model, p.gates);
    const Looking looking(model);
    for (std::size_t i = 0; i < batches.size(); ++i) {
      const Array logits = model.logits(batches[i]).value();
      for (std::int64_t j = 0; j < logits.size(); ++j) {
        const double value = static_cast<double>(logits.data<float>()[j]);
        const double other = static_cast<double>(after.logits[i].data<float>()[j]);
        p.largest_logit = std::max(p.largest_logit, std::abs(value));
        p.largest_difference = std::max(p.largest_difference, std::abs(value - other));
      }
    }
  }
  p.pruned = answers(*small, task, seed);
  p.loss = loss_between(p.intact, p.pruned, task.accuracy());
  p.intact_parameters = static_cast<double>(model.parameter_count());
  p.parameters = static_cast<double>(small->parameter_count());

  Checkpoint checkpoint;
  checkpoint.config = run.config;
  checkpoint.config.needs = smaller.needs;
  checkpoint.config.heads_off.clear();  // they are gone, or their gate is part of W_O
  checkpoint.vocabulary = run.vocabulary;
  checkpoint.step = run.step;
  checkpoint.parameters = NamedArrays(smaller.state.begin(), smaller.state.end());
  save_checkpoint(p.file, checkpoint);
}

}  // namespace

int prune_command(const Session& session) {
  Options o;
  CommandLine line = declare(o);
  if (!ready(line, session, o.common)) return 0;
  if (o.keep.has_value() == o.gates.has_value()) {
    throw UsageError(o.keep ? "--keep and --gates: one of them"
                            : "how many heads stay? --keep 0.5, for example");
  }
  const ChosenRun chosen = pick_run(*o.run);
  std::error_code error;
  const bool is_file = std::filesystem::is_regular_file(chosen.path, error);
  if (is_file && !o.out) throw UsageError("--out: needed where RUN is a file");
  const LoadedRun run = load_run(chosen.path, session.catalogue);
  check(run.task != nullptr, *o.run, "the task of this run is needed to weigh its heads: {}", run.task_error);
  check(!all_heads(*run.model).empty(), chosen.path.string(), "the model has no attention heads");
  Pruning p;
  p.file = o.out.value_or((chosen.path / "pruned.safetensors").string());
  choose(o, run, p);
  finish(session, run, p);
  const nlohmann::json json = prune_json(p, run, chosen);
  o.page.keep(line, session, *o.run, "prune.json", json);
  const std::string page = o.page.write(line, *o.run);
  if (o.common.json) {
    print_json(json);
  } else {
    print_for_people(prune_text(p, run, chosen) + "\n" + page);
  }
  return 0;
}

}  // namespace headlab
