#include "framework/train/metrics_log.h"

#include <cmath>

#include <nlohmann/json.hpp>

namespace headlab {

namespace {

LineLog open_behind(const std::filesystem::path& path, std::int64_t step) {
  if (std::filesystem::exists(path)) {
    std::int64_t kept = 0;
    const std::vector<std::string> lines = read_lines(path);
    for (const std::string& line : lines) {
      const nlohmann::json json = nlohmann::json::parse(line, nullptr, false);
      if (!json.is_object() || !json.contains("step") || !json["step"].is_number_integer()) break;
      if (json["step"].get<std::int64_t>() > step) break;
      ++kept;
    }
    if (kept < std::ssize(lines)) keep_lines(path, kept);
  }
  return LineLog(path);
}

nlohmann::ordered_json finite_or_null(double x) {
  return std::isfinite(x) ? nlohmann::ordered_json(x) : nlohmann::ordered_json(nullptr);
}

}  // namespace

MetricsLog::MetricsLog(const std::filesystem::path& path, std::int64_t step)
    : lines_(open_behind(path, step)) {}

void MetricsLog::write(const StepReport& report, const std::optional<Evaluation>& evaluation,
                       const nlohmann::ordered_json& more) {
  nlohmann::ordered_json line;
  line["step"] = report.step;
  line["loss"] = finite_or_null(report.loss);
  line["learning_rate"] = finite_or_null(report.learning_rate);
  line["gradient_norm"] = finite_or_null(report.gradient_norm);
  if (report.skipped) line["skipped"] = true;
  if (evaluation) {
    line["validation_loss"] = finite_or_null(evaluation->loss);
    line["accuracy"] = finite_or_null(evaluation->accuracy);
  }
  if (!more.empty()) line.update(more);
  lines_.append(line.dump());
}

}  // namespace headlab
