#include <algorithm>

#include <nlohmann/json.hpp>

#include "framework/command/knockout_text.h"
#include "framework/files/json_file.h"

namespace headlab {

namespace {

using Json = nlohmann::json;

Json names(const HeadList& heads) {
  Json list = Json::array();
  for (const HeadId id : heads) list.push_back(id.str());
  return list;
}

/// Lines of a text as one.
std::string one_line(std::string text) {
  while (!text.empty() && text.back() == '\n') text.pop_back();
  std::replace(text.begin(), text.end(), '\n', ' ');
  return text;
}

Json runs_json(const KnockoutRuns& runs, const std::optional<ReuseCheck>& check) {
  Json json{{"staged", runs.staged}, {"stages_run", runs.run}, {"stages_of_whole_passes", runs.whole}};
  if (check) {
    json["seconds"] = check->seconds;
    json["seconds_of_whole_passes"] = check->whole_seconds;
    json["same_bits"] = check->same_bits;
  }
  return json;
}

}  // namespace

Json knockout_json(const KnockoutAsked& asked, const Answers& intact) {
  return {{"run", asked.chosen.path.string()},
          {"chosen_because", asked.chosen.note},
          {"task", asked.run.config.task},
          {"seed", asked.run.config.seed},
          {"step", asked.run.step},
          {"how", name_of(asked.options.how)},
          {"path", name_of(asked.options.path)},
          {"sequences", intact.sequences},
          {"accuracy", intact.accuracy(asked.run.task->accuracy())},
          {"loss", intact.loss}};
}

Json loss_json(const KnockoutLoss& loss, const KnockoutAsked& asked) {
  const std::vector<double>& values = asked.kinds ? loss.kinds : loss.readouts;
  const std::vector<std::optional<double>>& halves =
      asked.kinds ? loss.kind_intervals : loss.readout_intervals;
  Json columns = Json::object(), intervals = Json::object();
  for (std::size_t c = 0; c < asked.columns.size(); ++c) {
    columns[asked.columns[c]] = values[c];
    intervals[asked.columns[c]] = c < halves.size() ? or_null(halves[c]) : Json();
  }
  return {{"loss_added", loss.loss}, {"interval", or_null(loss.interval)}, {"accuracy_lost", loss.accuracy},
          {"p", or_null(loss.p)},    {"p_holm", or_null(loss.adjusted_p)}, {"matters", loss.matters},
          {"lost_by", columns},      {"lost_by_interval", intervals}};
}

Json singles_json(const SingleHeads& found, const KnockoutAsked& asked) {
  Json json = knockout_json(asked, found.matrix.intact);
  Json heads = Json::array();
  std::vector<double> added;
  for (std::size_t h = 0; h < found.matrix.heads.size(); ++h) {
    const KnockoutLoss& loss = found.matrix.heads[h];
    const HeadImportance& importance = found.importance.heads[h];
    Json entry = loss_json(loss, asked);
    entry["head"] = loss.head.str();
    entry["importance"] = {{"example", importance.example},
                           {"token", or_null(importance.token)},
                           {"batch", importance.batch},
                           {"effect", importance.effect}};
    heads.push_back(std::move(entry));
    added.push_back(loss.loss);
  }
  const std::vector<double> values = values_of(found.importance, found.form, found.in_layers);
  json["heads"] = std::move(heads);
  json["importance"] = name_of(found.form);
  json["finding"] = one_line(verdict(found.matrix));
  json["spearman"] = or_null(spearman(values, added));
  json["kendall"] = or_null(kendall(values, added));
  json["reuse"] = runs_json(found.matrix.runs, found.check);
  return json;
}

Json sets_json(const std::vector<SetLoss>& sets, const KnockoutAsked& asked) {
  Json list = Json::array();
  for (const SetLoss& set : sets) {
    Json entry = loss_json(set.loss, asked);
    entry["name"] = set.set.name;
    entry["heads"] = names(set.set.heads);
    entry["random_sets"] = set.random.size();
    entry["random_mean"] = set.random.empty() ? Json() : loss_json(set.random_mean, asked);
    entry["p_random"] = or_null(set.p_random);
    list.push_back(std::move(entry));
  }
  return list;
}

Json cumulative_json(const std::vector<Answers>& steps, const HeadList& order, const KnockoutAsked& asked) {
  Json list = Json::array();
  for (std::size_t i = 0; i < steps.size(); ++i) {
    list.push_back({{"off", i},
                    {"head", i == 0 ? Json() : Json(order[i - 1].str())},
                    {"accuracy", steps[i].accuracy(asked.run.task->accuracy())},
                    {"loss", steps[i].loss}});
  }
  return list;
}

Json curve_json(const PruneCurve& curve) {
  Json points = Json::array();
  for (const PruneCurve::Point& point : curve.points) {
    points.push_back({{"off", point.off}, {"score", point.score}, {"loss", point.loss}});
  }
  return {{"points", points},
          {"area", curve.area},
          {"fewest_heads_that_keep_95_percent", curve.fewest},
          {"heads", curve.heads}};
}

Json kept_json(const std::vector<KeptHead>& kept, const KnockoutAsked& asked) {
  Json list = Json::array();
  for (const KeptHead& layer : kept) {
    Json entry = loss_json(layer.loss, asked);
    entry["kept"] = layer.head.str();
    entry["heads"] = layer.heads;
    list.push_back(std::move(entry));
  }
  return list;
}

Json shapley_json(const Shapley& shapley, const std::optional<ReuseCheck>& check) {
  Json shares = Json::array();
  for (const Shapley::Share& share : shapley.shares) {
    shares.push_back({{"head", share.head.str()},
                      {"accuracy", share.accuracy},
                      {"loss", share.loss},
                      {"accuracy_error", share.accuracy_error},
                      {"loss_error", share.loss_error}});
  }
  return {{"exact", shapley.exact},
          {"orders", shapley.orders},
          {"evaluations", shapley.evaluations},
          {"accuracy", shapley.accuracy},
          {"loss", shapley.loss},
          {"heads", shares},
          {"reuse", runs_json(shapley.runs, check)}};
}

}  // namespace headlab
