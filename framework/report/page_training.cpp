#include <cmath>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "framework/report/chart.h"
#include "framework/report/format.h"
#include "framework/report/html.h"
#include "framework/report/page_sections.h"

namespace headlab {

namespace {

using Json = nlohmann::json;

/// At most `pieces` means of equal pieces.
std::vector<ChartPoint> thinned(const std::vector<ChartPoint>& points, std::size_t pieces) {
  if (points.size() <= pieces) return points;
  std::vector<ChartPoint> out;
  for (std::size_t i = 0; i < pieces; ++i) {
    const std::size_t first = i * points.size() / pieces, last = (i + 1) * points.size() / pieces;
    ChartPoint mean;
    for (std::size_t k = first; k < last; ++k) {
      mean.x += points[k].x;
      mean.y += points[k].y;
    }
    const auto n = static_cast<double>(last - first);
    out.push_back({mean.x / n, mean.y / n});
  }
  return out;
}

}  // namespace

PageSections training_sections(const Json& config, const std::vector<Json>& metrics) {
  PageSection section{.id = "training", .title = "Training"};
  const Json& needs = config.at("needs");
  HtmlTable facts("The run", {{"what"}, {"value"}});
  const auto add = [&](const Json& from, std::initializer_list<const char*> keys) {
    for (const char* key : keys) {
      if (!from.contains(key)) continue;
      const Json& value = from[key];
      const std::string name = std::string(key) == "head_size" ? "d_head" : key;
      std::string text = value.is_string()            ? escaped(value.get<std::string>())
                         : value.is_number_unsigned() ? html_whole(value.get<std::int64_t>())
                         : value.is_number()          ? html_digits(value.get<double>())
                                                      : escaped(value.dump());
      if (name == "d_head" && value == 0) text = "d_model / heads";
      facts.row({escaped(name), text});
    }
  };
  add(config, {"task", "seed"});
  add(config.value("recipe", Json::object()), {"steps", "batch", "learning_rate", "schedule"});
  add(needs, {"architecture", "layers", "heads", "d_model", "head_size", "context", "mlp", "positions"});
  std::vector<ChartPoint> loss, validation, accuracy;
  for (const Json& line : metrics) {
    const double step = number_at(line, "step");
    if (std::isfinite(number_at(line, "loss"))) loss.push_back({step, number_at(line, "loss")});
    if (line.contains("validation_loss")) validation.push_back({step, number_at(line, "validation_loss")});
    if (line.contains("accuracy")) accuracy.push_back({step, number_at(line, "accuracy")});
  }
  if (!loss.empty()) {
    Chart chart{.title = "Loss", .x_label = "step", .y_label = "nats"};
    chart.series.push_back({.name = "training", .line = thinned(loss, 200)});
    if (validation.size() > 1)
      chart.series.push_back({.name = "held out", .line = validation, .dashed = true});
    section.picture("loss", chart_svg(chart));
    if (accuracy.size() > 1) {
      Chart right{.title = "Accuracy on the held-out set", .x_label = "step", .y_label = "accuracy"};
      right.series.push_back({.line = accuracy});
      section.picture("held-out-accuracy", chart_svg(right));
    }
    const Json& last = metrics.back();
    facts.row({"loss of the last step", html_number(number_at(last, "loss"), 4)});
  }
  if (!accuracy.empty()) facts.row({"held-out accuracy", html_number(accuracy.back().y, 4)});
  section.add(facts.str());
  return {std::move(section)};
}

}  // namespace headlab
