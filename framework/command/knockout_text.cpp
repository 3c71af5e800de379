#include "framework/command/knockout_text.h"

#include <algorithm>

#include <fmt/format.h>

#include "framework/command/console.h"
#include "framework/command/session.h"
#include "framework/report/format.h"
#include "framework/report/table.h"

namespace headlab {

namespace {

std::string what_is_done(How how) {
  switch (how) {
    case How::mean:
      return "a head's output is replaced by its mean over the set";
    case How::resample:
      return "a head's output is replaced by that of another example";
    case How::uniform:
      return "a head attends evenly";
    case How::frozen:
      return "a head's output is zeroed while all attention stays as it was";
    case How::zero:
      break;
  }
  return "a head's output is zeroed";
}

std::string who_sees(Path path) {
  switch (path) {
    case Path::q:
      return "; only the queries of later layers see it";
    case Path::k:
      return "; only the keys of later layers see it";
    case Path::v:
      return "; only the values of later layers see it";
    case Path::residual:
      return "; queries, keys and values of later layers do not see it";
    case Path::all:
      break;
  }
  return "";
}

std::string p_text(const std::optional<double>& p) {
  if (!p) return "–";
  return *p < 0.001 ? "< 0.001" : fixed(*p);
}

const std::vector<double>& columns_of(const KnockoutLoss& loss, const KnockoutAsked& asked) {
  return asked.kinds ? loss.kinds : loss.readouts;
}

std::string list_text(const HeadList& heads) {
  std::vector<std::string> names;
  for (const HeadId id : heads) names.push_back(id.str());
  return fmt::format("{}", fmt::join(names, ", "));
}

/// Up to ten, then how many more.
std::string short_list(const HeadList& heads) {
  if (heads.size() <= 12) return list_text(heads);
  const HeadList first(heads.begin(), heads.begin() + 10);
  return list_text(first) + fmt::format(" and {} more", heads.size() - 10);
}

std::string matrix_text(const std::vector<std::string>& rows, const std::vector<const KnockoutLoss*>& losses,
                        const std::string& heading, const KnockoutAsked& asked) {
  if (asked.columns.empty()) return "";
  constexpr std::size_t most = 10;
  std::vector<Column> columns{{heading}};
  const std::size_t shown = std::min(asked.columns.size(), most);
  for (std::size_t c = 0; c < shown; ++c) columns.push_back({asked.columns[c], Align::right});
  Table table(columns);
  table.title(asked.kinds ? "Share of right answers lost, by what the answer is"
                          : "Share of right answers lost, by read-out");
  for (std::size_t r = 0; r < rows.size(); ++r) {
    std::vector<std::string> cells{rows[r]};
    for (std::size_t c = 0; c < shown; ++c) cells.push_back(fixed(columns_of(*losses[r], asked)[c]));
    table.row(cells);
  }
  if (shown < asked.columns.size()) {
    table.note(fmt::format("{} of {} columns; --json has them all", shown, asked.columns.size()));
  }
  return "\n" + table.str(output_terminal());
}

std::string reuse_text(const KnockoutRuns& runs, const std::optional<ReuseCheck>& check) {
  std::string text;
  if (runs.staged && runs.run > 0) {
    const double times = static_cast<double>(runs.whole) / static_cast<double>(runs.run);
    text = fmt::format("What knock-outs share was run once: {} parts of layers in place of {}, {}× fewer.\n",
                       grouped(runs.run), grouped(runs.whole), fixed(times, 1));
  } else if (!runs.staged) {
    text = "Every knock-out took a whole pass: the model does not run in stages, or the path needs it.\n";
  }
  if (check) {
    text += fmt::format("One whole pass each takes {}, this took {}: {}× faster, {}.\n",
                        duration(check->whole_seconds), duration(check->seconds),
                        fixed(check->whole_seconds / std::max(check->seconds, 1e-9), 1),
                        check->same_bits ? "the same bits" : "but the bits differ");
  }
  return text;
}

}  // namespace

std::string verdict(const KnockoutMatrix& matrix) {
  HeadList matter;
  bool tested = false;
  for (const KnockoutLoss& head : matrix.heads) {
    tested = tested || head.p.has_value();
    if (head.matters) matter.push_back(head.head);
  }
  if (!tested &&
      std::ssize(matrix.intact.sequence_losses) < static_cast<std::int64_t>(fewest_sequences_to_test)) {
    return fmt::format("Nothing is said about significance: {} sequences are fewer than {}.\n",
                       matrix.intact.sequences, fewest_sequences_to_test);
  }
  std::string text = fmt::format("{} of {} heads matter{} (Holm, α = 0.05, ≥ 1 % of the loss)", matter.size(),
                                 matrix.heads.size(),
                                 matter.size() == 1 ? "s"
                                 : matter.empty()   ? " by themselves"
                                                    : "");
  text += matter.empty() ? ": others may do the same work; see --cumulative.\n"
                         : fmt::format(": {}.\n", short_list(matter));
  return text + "This speaks of this model, not of other seeds.\n";
}

std::string knockout_header(const KnockoutAsked& asked, const Answers& intact) {
  const RunConfig& config = asked.run.config;
  std::string text = asked.chosen.note.empty() ? "" : asked.chosen.note + "\n";
  text += fmt::format("{}: {}, {} layers of heads, seed {}, step {} of {}\n", asked.chosen.path.string(),
                      config.task, std::ssize(head_layers(*asked.run.model)), config.seed,
                      grouped(asked.run.step), grouped(config.recipe.steps));
  text += fmt::format("intact: accuracy {}, loss {} nats on {} held-out sequences\n",
                      fixed(intact.accuracy(asked.run.task->accuracy())), fixed(intact.loss, 4),
                      grouped(intact.sequences));
  return text + fmt::format("off: {}{}\n\n", what_is_done(asked.options.how), who_sees(asked.options.path));
}

std::string singles_text(const SingleHeads& found, const KnockoutAsked& asked) {
  const KnockoutMatrix& matrix = found.matrix;
  const std::vector<double> importance = values_of(found.importance, found.form, found.in_layers);
  Table table({{"head"},
               {"loss added", Align::right},
               {"p (Holm)", Align::right},
               {"accuracy lost", Align::right},
               {"importance", Align::right}});
  std::vector<std::string> names;
  std::vector<const KnockoutLoss*> losses;
  std::vector<double> added;
  for (std::size_t h = 0; h < matrix.heads.size(); ++h) {
    const KnockoutLoss& loss = matrix.heads[h];
    if (h > 0 && matrix.heads[h - 1].head.layer != loss.head.layer) table.rule();
    table.row({loss.head.str() + (loss.matters ? " *" : ""), estimate(loss.loss, loss.interval, 4, true),
               p_text(loss.adjusted_p), fixed(loss.accuracy), fixed(importance[h], 4)});
    names.push_back(loss.head.str());
    losses.push_back(&loss);
    added.push_back(loss.loss);
  }
  table.note("loss added: nats when the head is off, ± the 95 % t interval over sequences; * it matters.");
  table.note(
      found.form == ImportanceForm::effect
          ? "importance: the loss that removing the head would add if the loss were linear in its gate."
          : "importance: how steeply the loss changes with the head's gate, without a knock-out");
  if (found.form == ImportanceForm::example) table.note("(per example: Michel et al. 2019, eq. 2).");
  if (found.form == ImportanceForm::token) table.note("(per token).");
  if (found.form == ImportanceForm::batch) table.note("(per batch).");
  std::string text =
      table.str(output_terminal()) + matrix_text(names, losses, "without", asked) + "\n" + verdict(matrix);
  const std::optional<double> rho = spearman(importance, added);
  const std::optional<double> tau = kendall(importance, added);
  if (rho && tau) {
    text += fmt::format("Importance orders the heads {} the knock-outs do: Spearman {}, Kendall {}.\n",
                        *rho >= 0.8   ? "nearly as"
                        : *rho >= 0.5 ? "roughly as"
                                      : "otherwise than",
                        with_sign(*rho, 2), with_sign(*tau, 2));
  }
  return text + reuse_text(matrix.runs, found.check);
}

std::string sets_text(const std::vector<SetLoss>& sets, const Answers& intact, const KnockoutAsked& asked) {
  Table table({{"set"},
               {"heads"},
               {"loss added", Align::right},
               {"accuracy lost", Align::right},
               {"random sets", Align::right},
               {"as dear", Align::right}});
  std::vector<std::string> names;
  std::vector<const KnockoutLoss*> losses;
  std::string verdicts;
  for (const SetLoss& set : sets) {
    const bool has_random = !set.random.empty();
    const auto as_dear =
        has_random ? std::llround(*set.p_random * static_cast<double>(1 + set.random.size())) - 1 : 0;
    table.row({set.set.name + (set.loss.matters ? " *" : ""), short_list(set.set.heads),
               estimate(set.loss.loss, set.loss.interval, 4, true), fixed(set.loss.accuracy),
               has_random ? with_sign(set.random_mean.loss, 4) : "–",
               has_random ? fmt::format("{} of {}", as_dear, set.random.size()) : "–"});
    names.push_back(set.set.name);
    losses.push_back(&set.loss);
    if (has_random) {
      names.push_back("  random");
      losses.push_back(&set.random_mean);
    }
    verdicts += fmt::format("{}: without {} {} the loss rises by {} nats", set.set.name,
                            set.set.heads.size() == 1 ? "head" : "heads", short_list(set.set.heads),
                            with_sign(set.loss.loss, 3));
    if (has_random) {
      verdicts += fmt::format(", without random ones by {} (p = {} over {} sets).\n",
                              with_sign(set.random_mean.loss, 3), fixed(*set.p_random), set.random.size());
    } else {
      verdicts += ";\n  its layers have no other heads to compare with.\n";
    }
  }
  table.note("All heads of a set are off at once. * it matters (Holm over the sets, ≥ 1 % of the loss).");
  table.note("random sets: mean loss added by other sets with as many heads in each layer; as dear: how");
  table.note("many of them cost at least as much.");
  return knockout_header(asked, intact) + table.str(output_terminal()) +
         matrix_text(names, losses, "without", asked) + "\n" + verdicts;
}

std::string cumulative_text(const std::vector<Answers>& steps, const HeadList& order,
                            const KnockoutAsked& asked) {
  const Accuracy kind = asked.run.task->accuracy();
  Table table({{"off", Align::right}, {"and now"}, {"accuracy", Align::right}, {"loss", Align::right}});
  std::optional<std::size_t> half;
  const double intact = steps[0].accuracy(kind);
  const double chance = asked.run.task->chance();
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const double accuracy = steps[i].accuracy(kind);
    if (!half && accuracy < (intact + chance) / 2) half = i;
    table.row(
        {fmt::format("{}", i), i == 0 ? "" : order[i - 1].str(), fixed(accuracy), fixed(steps[i].loss, 4)});
  }
  table.note("Heads are switched off one after another, first the one that costs most by itself.");
  std::string text = knockout_header(asked, steps[0]) + table.str(output_terminal()) + "\n";
  if (!half) {
    return text + "Even without any head more than half of what lies above guessing is left.\n";
  }
  return text +
         fmt::format("{} of {} heads have to go before half of what lies above guessing ({}) is lost.\n",
                     *half, order.size(), fixed(chance));
}

std::string curve_text(const PruneCurve& curve, const Answers& intact, const KnockoutAsked& asked) {
  Table table(
      {{"off", Align::right}, {"left", Align::right}, {"score", Align::right}, {"loss", Align::right}});
  for (const PruneCurve::Point& point : curve.points) {
    table.row({fmt::format("{}", point.off), fmt::format("{}", curve.heads - point.off), percent(point.score),
               fixed(point.loss, 4)});
  }
  table.note("Heads go in ascending order of importance. score: accuracy as a share of the intact one.");
  return knockout_header(asked, intact) + table.str(output_terminal()) +
         fmt::format(
             "\nArea under the curve {} (1: nothing is ever lost). {} of {} heads ({}) keep {} of the "
             "score:\nheadlab prune {} --keep {} removes the others.\n",
             fixed(curve.area), curve.fewest, curve.heads,
             percent(static_cast<double>(curve.fewest) / static_cast<double>(curve.heads), 0),
             percent(PruneCurve::kept_score, 0), for_shell(asked.chosen.path.string()),
             fixed(static_cast<double>(curve.fewest) / static_cast<double>(curve.heads), 2));
}

std::string kept_text(const std::vector<KeptHead>& kept, const Answers& intact, const KnockoutAsked& asked) {
  Table table({{"layer"},
               {"kept"},
               {"others off", Align::right},
               {"loss added", Align::right},
               {"p (Holm)", Align::right},
               {"accuracy lost", Align::right}});
  std::size_t free = 0;
  const std::vector<HeadLayer*> layers = head_layers(*asked.run.model);
  for (const KeptHead& layer : kept) {
    free += layer.loss.accuracy < 0.01 ? 1 : 0;
    table.row({layers[static_cast<std::size_t>(layer.head.layer)]->module().path(),
               layer.head.str() + (layer.loss.matters ? " *" : ""), fmt::format("{}", layer.heads - 1),
               estimate(layer.loss.loss, layer.loss.interval, 4, true), p_text(layer.loss.adjusted_p),
               fixed(layer.loss.accuracy)});
  }
  table.note("One layer at a time is left with its best head alone, chosen on one half of the held-out set");
  table.note("and measured on the other. * the loss of the others matters.");
  return knockout_header(asked, intact) + table.str(output_terminal()) +
         fmt::format(
             "\n{} of {} layers can do with one head for less than 0.01 of accuracy (Michel et "
             "al.\n2019, section 3.3, found that most can).\n",
             free, kept.size());
}

std::string shapley_text(const Shapley& shapley, const std::optional<ReuseCheck>& check,
                         const Answers& intact, const KnockoutAsked& asked) {
  Table table({{"head"}, {"share of accuracy", Align::right}, {"share of loss", Align::right}});
  double best = 0;
  HeadId best_head;
  for (std::size_t h = 0; h < shapley.shares.size(); ++h) {
    const Shapley::Share& share = shapley.shares[h];
    if (h > 0 && shapley.shares[h - 1].head.layer != share.head.layer) table.rule();
    const auto error = [&](double e) { return shapley.exact ? std::optional<double>() : std::optional(e); };
    table.row({share.head.str(), estimate(share.accuracy, error(share.accuracy_error), 4, true),
               estimate(share.loss, error(share.loss_error), 4, true)});
    if (share.loss > best) {
      best = share.loss;
      best_head = share.head;
    }
  }
  table.row({"all", with_sign(shapley.accuracy, 4), with_sign(shapley.loss, 4)});
  table.note(
      "Shapley values: what a head adds, averaged over all orders in which heads can come. Heads that");
  table.note("stand in for one another share what they do, where single knock-outs show nothing.");
  table.note(shapley.exact
                 ? fmt::format("Exact, from all {} sets of heads.", grouped(shapley.evaluations))
                 : fmt::format("± one standard error over {} random orders.", grouped(shapley.orders)));
  return knockout_header(asked, intact) + table.str(output_terminal()) +
         fmt::format("\nOf the {} nats that all heads together save, head {} saves {} ({}).\n",
                     fixed(shapley.loss, 4), best_head.str(), fixed(best, 4),
                     percent(shapley.loss > 0 ? best / shapley.loss : 0, 0)) +
         reuse_text(shapley.runs, check);
}

}  // namespace headlab
