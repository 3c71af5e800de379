#include <algorithm>
#include <chrono>
#include <numeric>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "framework/command/head_list.h"
#include "framework/command/knockout_text.h"
#include "framework/command/page_option.h"
#include "framework/command/subcommands.h"
#include "framework/core/check.h"
#include "framework/core/suggest.h"
#include "framework/heads/analyse.h"
#include "framework/report/page.h"

namespace headlab {

namespace {

struct Options {
  CommonOptions common;
  PageOption page;
  std::optional<std::string> run, how, path, heads, set, importance;
  bool cumulative = false, curve = false, keep_one = false, shapley = false, check = false,
       layer_norm = false;
  std::optional<std::int64_t> sequences, orders;  // absent: see affordable(), and 16
  std::int64_t random = 20;
};

CommandLine declare(Options& o) {
  CommandLine line("knockout", "switch heads of a trained model off and see what is lost");
  line.argument("RUN", o.run, "folder of a run; of a sweep, its typical run is taken", true);
  line.group("What is asked (one of them; otherwise every head by itself)");
  line.text("--heads", "L.H,…", o.heads, "these heads together, beside random sets of the same layers")
      .text("--set", "TARGET", o.set,
            "all heads with more than 0.3 of their weight on a target of the task, beside random sets; "
            "'all': a set for each target")
      .flag("--cumulative", o.cumulative, "one after another, first the one that costs most by itself")
      .flag("--curve", o.curve, "one tenth after another, first the least important")
      .flag("--keep-one", o.keep_one, "each layer with its best head alone")
      .flag("--shapley", o.shapley,
            "fair shares: exact for up to 12 heads, else from random orders with a standard error");
  line.group("How a head is switched off");
  line.text("--how", "HOW", o.how,
            "zero: its output is 0; mean: its mean over the set; resample: that of another example; uniform: "
            "it attends evenly; frozen: 0, while all attention stays as in the intact run",
            "zero")
      .text("--path", "PATH", o.path,
            "who sees it: q, k or v: only what later layers read as queries, keys or values; residual: "
            "everything but these; all",
            "all");
  line.group("Options");
  line.text("--importance", "FORM", o.importance,
            "the importance beside the knock-outs, and the order of --curve: example (Michel et al. 2019), "
            "token, batch, or effect, which has a sign",
            "example")
      .flag("--within-layers", o.layer_norm, "divide importance by its ℓ2 norm in each layer")
      .whole("--random", o.random, {1, 1000}, "random sets beside each set")
      .whole("--orders", o.orders, {2, 100'000}, "random orders for --shapley with more than 12 heads", "16")
      .whole("--sequences", o.sequences, {2, 1'000'000'000}, "held-out sequences to use",
             "half of them, fewer for a large model")
      .flag("--check", o.check,
            "also run one whole pass for every knock-out, and compare bits and time; for single heads "
            "and --shapley");
  o.common.add_threads(line);
  o.page.add(line);
  o.common.add_json(line);
  return line.example("headlab knockout runs/offsets", "which heads matter, and for which answer")
      .example("headlab knockout runs/induction --path k",
               "K-composition: who decides where later heads look")
      .example("headlab knockout runs/roles --set all", "do the heads of one job serve that job alone?")
      .example("headlab knockout sweeps/offsets --how mean", "the typical run of a sweep, replaced by means");
}

template <class E>
E named(const std::string& option, const std::optional<std::string>& given, std::initializer_list<E> all,
        E otherwise) {
  if (!given) return otherwise;
  std::vector<std::string> names;
  for (const E value : all) {
    names.push_back(name_of(value));
    if (names.back() == *given) return value;
  }
  throw UsageError(fmt::format("{}: '{}' is none of {}{}", option, printable(*given), fmt::join(names, ", "),
                               did_you_mean(*given, names)));
}

/// At most one question at a time.
void check_question(const Options& o) {
  std::vector<std::string> asked;
  if (o.heads) asked.emplace_back("--heads");
  if (o.set) asked.emplace_back("--set");
  if (o.cumulative) asked.emplace_back("--cumulative");
  if (o.curve) asked.emplace_back("--curve");
  if (o.keep_one) asked.emplace_back("--keep-one");
  if (o.shapley) asked.emplace_back("--shapley");
  if (asked.size() > 1) {
    throw UsageError(fmt::format("{} and {}: one question at a time", asked[0], asked[1]));
  }
  if (o.check && !asked.empty() && !o.shapley) {
    throw UsageError("--check: goes with single heads or --shapley, not with " + asked[0]);
  }
  if (o.orders && !o.shapley) throw UsageError("--orders: goes with --shapley");
}

/// Operations of one pass over the whole held-out half.
double pass_flops(const LoadedRun& run) {
  const Needs& needs = run.config.needs;
  const double length = static_cast<double>(needs.context + needs.source_context);
  return 2 * needs.parameters() * static_cast<double>(run.task->held_out_size(HeldOut::score)) * length;
}

/// How many sequences can be had for `passes` of them; a multiple of 64, which is one batch.
std::int64_t affordable(const LoadedRun& run, double passes) {
  constexpr double budget = 3e11;  // some ten seconds
  const std::int64_t size = run.task->held_out_size(HeldOut::score);
  const double share = budget / std::max(1.0, pass_flops(run) * passes);
  if (share >= 1) return size;
  const auto wanted = static_cast<std::int64_t>(share * static_cast<double>(size)) / 64 * 64;
  return std::min(size, std::max<std::int64_t>(wanted, 64));
}

std::vector<HeadSet> sets_of_targets(const LoadedRun& run, const std::string& wanted) {
  const HeadAnalysis analysis = analyse_heads(*run.model, *run.task, run.config.seed);
  std::vector<HeadSet> sets;
  std::vector<std::string> names;
  for (std::size_t t = 0; t < analysis.targets.size(); ++t) {
    const HeadTarget& target = analysis.targets[t].target;
    if (target.kind != HeadTarget::Kind::key) continue;
    names.push_back(target.name);
    HeadSet set{target.name, {}};
    for (const HeadReport& head : analysis.heads) {
      if (head.targets[t].queries > 0 && head.targets[t].mass > set_mass) set.heads.push_back(head.id);
    }
    if (wanted == "all" ? !set.heads.empty() : wanted == target.name) sets.push_back(std::move(set));
  }
  if (sets.empty() && wanted != "all") {
    throw UsageError(fmt::format("--set: '{}' is no target of {}{}; its targets: {}", printable(wanted),
                                 run.task->name(), did_you_mean(wanted, names), fmt::join(names, ", ")));
  }
  check(!sets.empty() && !sets.front().heads.empty(), "--set",
        "no head puts more than {} of its weight on {}", set_mass, wanted == "all" ? "a target" : wanted);
  return sets;
}

template <class F>
double seconds_of(const F& f) {
  const auto begin = std::chrono::steady_clock::now();
  f();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

bool same_bits(const KnockoutMatrix& a, const KnockoutMatrix& b) {
  return std::equal(a.heads.begin(), a.heads.end(), b.heads.begin(), b.heads.end(),
                    [](const KnockoutLoss& x, const KnockoutLoss& y) {
                      return x.loss == y.loss && x.interval == y.interval && x.readouts == y.readouts;
                    });
}

bool same_bits(const Shapley& a, const Shapley& b) {
  return std::equal(a.shares.begin(), a.shares.end(), b.shares.begin(), b.shares.end(),
                    [](const Shapley::Share& x, const Shapley::Share& y) {
                      return x.loss == y.loss && x.accuracy == y.accuracy;
                    });
}

/// What `find` finds with these options, once more and in one whole pass a set; times are the best of three.
template <class F>
ReuseCheck checked(const KnockoutOptions& options, const F& find) {
  ReuseCheck check{.seconds = 1e9, .whole_seconds = 1e9, .same_bits = true};
  KnockoutOptions whole = options;
  whole.reuse = false;
  auto shared_result = find(options);
  auto whole_result = shared_result;
  for (int i = 0; i < 3; ++i) {
    check.seconds = std::min(check.seconds, seconds_of([&] { shared_result = find(options); }));
    check.whole_seconds = std::min(check.whole_seconds, seconds_of([&] { whole_result = find(whole); }));
    check.same_bits = check.same_bits && same_bits(shared_result, whole_result);
  }
  return check;
}

/// Heads by a value, the largest first (or last); ties in their order.
HeadList ordered(const std::vector<HeadId>& heads, const std::vector<double>& values, bool largest_first) {
  std::vector<std::size_t> order(heads.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return largest_first ? values[a] > values[b] : values[a] < values[b];
  });
  HeadList list;
  for (const std::size_t i : order) list.push_back(heads[i]);
  return list;
}

/// Prints what was found and keeps it for the page, in a file for each question and way of asking.
class Show {
 public:
  Show(const CommandLine& line, const Session& session, Options& o) : line_(line), session_(session), o_(o) {}
  int operator()(std::string_view question, const nlohmann::json& json, const std::string& text) {
    o_.page.keep(
        line_, session_, *o_.run,
        knockout_file(question, json.at("how").get<std::string>(), json.at("path").get<std::string>()), json);
    const std::string page = o_.page.write(line_, *o_.run);
    if (o_.common.json) {
      print_json(json);
    } else {
      print_for_people(text + "\n" + page);
    }
    return 0;
  }

 private:
  const CommandLine& line_;
  const Session& session_;
  Options& o_;
};

}  // namespace

int knockout_command(const Session& session) {
  Options o;
  CommandLine line = declare(o);
  if (!ready(line, session, o.common)) return 0;
  check_question(o);
  Show show(line, session, o);
  KnockoutOptions options;
  options.how =
      named("--how", o.how, {How::zero, How::mean, How::resample, How::uniform, How::frozen}, How::zero);
  options.path = named("--path", o.path, {Path::all, Path::q, Path::k, Path::v, Path::residual}, Path::all);
  const auto form =
      named("--importance", o.importance,
            {ImportanceForm::example, ImportanceForm::token, ImportanceForm::batch, ImportanceForm::effect},
            ImportanceForm::example);
  const HeadList given = o.heads ? parse_heads("--heads", *o.heads) : HeadList{};

  const ChosenRun chosen = pick_run(*o.run);
  const LoadedRun run = load_run(chosen.path, session.catalogue);
  check(run.task != nullptr, *o.run, "the task of this run is needed to ask it anything: {}", run.task_error);
  Model& model = *run.model;
  const Task& task = *run.task;
  const std::uint64_t seed = run.config.seed;
  const std::vector<HeadId> heads = all_heads(model);
  check(!heads.empty(), chosen.path.string(), "the model has no attention heads");
  as_usage([&] {
    for (const HeadId id : given) layer_of(model, id);
  });

  KnockoutAsked asked{run, chosen, options, token_kinds(task).names, true};
  if (asked.columns.empty()) {
    asked.kinds = false;
    asked.columns = task.answer_names();
    if (asked.columns.size() < 2) asked.columns.clear();
  }
  const auto with_sequences = [&](double passes) {
    options.sequences = o.sequences.value_or(affordable(run, passes));
    options.sequences = std::min(options.sequences, task.held_out_size(HeldOut::score));
  };
  const auto count = static_cast<double>(heads.size());
  const auto importance = [&] {
    return head_importance(model, task, seed, {.sequences = options.sequences});
  };

  if (o.heads || o.set) {
    std::vector<HeadSet> sets{{"given", given}};
    if (o.set) sets = sets_of_targets(run, *o.set);
    with_sequences(static_cast<double>(sets.size()) * static_cast<double>(o.random + 1));
    const std::vector<SetLoss> losses =
        set_losses(model, task, seed, sets, static_cast<std::size_t>(o.random), options);
    const Answers intact = answers_without(model, task, seed, {}, options);
    nlohmann::json json = knockout_json(asked, intact);
    json["sets"] = sets_json(losses, asked);
    return show("knockout-sets", json, sets_text(losses, intact, asked));
  }
  if (o.keep_one) {
    with_sequences(2 * count);
    const std::vector<KeptHead> kept = keep_one(model, task, seed, options);
    check(!kept.empty(), chosen.path.string(), "no layer has more than one head");
    const Answers intact = answers_without(model, task, seed, {}, options);
    nlohmann::json json = knockout_json(asked, intact);
    json["layers"] = kept_json(kept, asked);
    return show("knockout-keep-one", json, kept_text(kept, intact, asked));
  }
  if (o.curve) {
    with_sequences(14);
    const HeadList order = ordered(heads, values_of(importance(), form, o.layer_norm), false);
    const PruneCurve curve = prune_curve(model, task, seed, order, options);
    const Answers intact = answers_without(model, task, seed, {}, options);
    nlohmann::json json = knockout_json(asked, intact);
    json["curve"] = curve_json(curve);
    return show("knockout-curve", json, curve_text(curve, intact, asked));
  }
  if (o.shapley) {
    const bool exact = heads.size() <= most_exact_heads;
    const double sets = exact ? static_cast<double>(std::uint64_t{1} << heads.size())
                              : count * static_cast<double>(o.orders.value_or(16));
    with_sequences(sets);
    const auto find = [&](const KnockoutOptions& how) {
      return shapley(model, task, seed, o.orders.value_or(16), how);
    };
    const Shapley values = find(options);
    const auto check = o.check ? std::optional(checked(options, find)) : std::nullopt;
    const Answers intact = answers_without(model, task, seed, {}, options);
    nlohmann::json json = knockout_json(asked, intact);
    json["shapley"] = shapley_json(values, check);
    return show("knockout-shapley", json, shapley_text(values, check, intact, asked));
  }
  with_sequences(o.cumulative ? 2 * count : count + 4);
  SingleHeads found;
  found.form = form;
  found.in_layers = o.layer_norm;
  found.matrix = knockout_matrix(model, task, seed, options);
  if (o.cumulative) {
    std::vector<double> added;
    for (const KnockoutLoss& loss : found.matrix.heads) added.push_back(loss.loss);
    const HeadList order = ordered(heads, added, true);
    const std::vector<Answers> steps = cumulative(model, task, seed, order, options);
    nlohmann::json json = knockout_json(asked, steps[0]);
    json["steps"] = cumulative_json(steps, order, asked);
    return show("knockout-cumulative", json, cumulative_text(steps, order, asked));
  }
  if (o.check) {
    found.check =
        checked(options, [&](const KnockoutOptions& how) { return knockout_matrix(model, task, seed, how); });
  }
  found.importance = importance();
  return show("knockout", singles_json(found, asked),
              knockout_header(asked, found.matrix.intact) + singles_text(found, asked));
}

}  // namespace headlab
