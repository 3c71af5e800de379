#include "framework/train/metrics_log.h"

#include <limits>

#include <nlohmann/json.hpp>

#include "framework/files/atomic_file.h"
#include "tests/support/errors.h"
#include "tests/support/temporary_folder.h"

namespace headlab {
namespace {

StepReport report_of(std::int64_t step) {
  StepReport report;
  report.step = step;
  report.loss = 0.1 * static_cast<double>(step);
  report.learning_rate = 0.01;
  report.gradient_norm = 2;
  return report;
}

TEST(MetricsLog, WritesOneObjectAStep) {
  const TemporaryFolder folder;
  const auto path = folder / "metrics.jsonl";
  MetricsLog log(path, 0);
  log.write(report_of(1), std::nullopt, {});
  log.write(report_of(2), Evaluation{1.5, 0.25, 8}, {{"heads_row", 0}});
  log.close();
  EXPECT_EQ(read_file(path),
            "{\"step\":1,\"loss\":0.1,\"learning_rate\":0.01,\"gradient_norm\":2.0}\n"
            "{\"step\":2,\"loss\":0.2,\"learning_rate\":0.01,\"gradient_norm\":2.0,"
            "\"validation_loss\":1.5,\"accuracy\":0.25,\"heads_row\":0}\n");
}

TEST(MetricsLog, StaysJsonWhenNumbersAreNot) {
  const TemporaryFolder folder;
  const auto path = folder / "metrics.jsonl";
  MetricsLog log(path, 0);
  StepReport report = report_of(1);
  report.gradient_norm = std::numeric_limits<double>::infinity();
  report.skipped = true;
  log.write(report, Evaluation{std::numeric_limits<double>::quiet_NaN(), 0, 8}, {});
  const auto json = nlohmann::json::parse(read_lines(path).at(0));
  EXPECT_TRUE(json.at("gradient_norm").is_null());
  EXPECT_TRUE(json.at("validation_loss").is_null());
  EXPECT_EQ(json.at("skipped"), true);
}

TEST(MetricsLog, DropsLinesFromAfterTheCheckpoint) {
  const TemporaryFolder folder;
  const auto path = folder / "metrics.jsonl";
  const std::string two = "{\"step\":1}\n{\"step\":2}\n";
  for (const std::string& rest :
       std::vector<std::string>{"", "{\"step\":3}\n{\"step\":4}\n", "{\"step\":3}\n{\"st", "nonsense\n"}) {
    write_file(path, two + rest);
    MetricsLog(path, 2).write(report_of(3), std::nullopt, {});
    const auto lines = read_lines(path);
    ASSERT_EQ(lines.size(), 3U) << rest;
    EXPECT_EQ(nlohmann::json::parse(lines[2]).at("loss"), report_of(3).loss);
  }
  MetricsLog(path, 0).close();
  EXPECT_EQ(read_file(path), "");
}

}  // namespace
}  // namespace headlab
