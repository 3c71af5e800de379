#include "framework/train/progress.h"

#include <cstdio>

#include "tests/support/training.h"

namespace headlab {
namespace {

/// A stream in memory and a clock that a test moves.
class ProgressTest : public testing::Test {
 protected:
  ProgressTest() : out_(std::tmpfile()), model_(build_model(task_.needs())) {}
  ~ProgressTest() override { std::fclose(out_); }
  Progress progress(bool always) {
    return Progress({.out = out_, .always = always, .label = "h4 ", .seconds = [this] { return now_; }});
  }
  void step(Progress& progress, std::int64_t step, bool skipped = false) {
    progress.on_step(*model_, {.step = step,
                               .steps = 600,
                               .loss = 1.23456,
                               .learning_rate = 0.1,
                               .gradient_norm = 1,
                               .skipped = skipped,
                               .tokens = 1000});
  }
  /// What has been written since the last call.
  std::string written() {
    std::fflush(out_);
    std::string text(static_cast<std::size_t>(std::ftell(out_)), '\0');
    std::rewind(out_);
    EXPECT_EQ(std::fread(text.data(), 1, text.size(), out_), text.size());
    std::rewind(out_);
    return text;
  }

  TinyTask task_;
  std::FILE* out_;
  std::unique_ptr<Model> model_;
  double now_ = 100;
};

TEST_F(ProgressTest, ShowsStepLossSpeedAndTimeLeft) {
  Progress p = progress(true);
  p.on_start(*model_, task_, 500, 600);
  now_ += 2;
  step(p, 502);
  EXPECT_EQ(written(), "\rh4 step 502/600  loss 1.2346  500 tokens/s  1:38 left\x1b[K");
  now_ += 1;
  p.on_evaluation(*model_, 502, {.loss = 1.5, .accuracy = 0.25, .scored = 3});
  step(p, 503, true);
  EXPECT_EQ(written(),
            "\rh4 step 503/600  loss 1.2346  667 tokens/s  1:37 left  validation 1.5000, accuracy 0.250"
            "  update skipped: the gradient is not finite\x1b[K");
}

TEST_F(ProgressTest, ComesAtMostTenTimesASecondAndOnceAtTheEnd) {
  Progress p = progress(true);
  p.on_start(*model_, task_, 0, 600);
  int printed = 0;
  for (int i = 1; i <= 600; ++i) {
    now_ += 0.005;
    step(p, i);
    printed += written().empty() ? 0 : 1;
  }
  EXPECT_GE(printed, 25);
  EXPECT_LE(printed, 31);
  step(p, 600);
  p.on_end(*model_);
  const std::string last = written();
  EXPECT_NE(last.find("step 600/600"), std::string::npos);
  EXPECT_EQ(last.back(), '\n');
}

TEST_F(ProgressTest, EndsItsLineWhenTrainingFailed) {
  {
    Progress p = progress(true);
    p.on_start(*model_, task_, 0, 600);
    now_ += 1;
    step(p, 1);
    EXPECT_NE(written().back(), '\n');
  }
  EXPECT_EQ(written(), "\n");
}

TEST_F(ProgressTest, IsSilentWhereNobodyLooks) {
  Progress p = progress(false);
  p.on_start(*model_, task_, 0, 600);
  now_ += 5;
  step(p, 1);
  p.on_end(*model_);
  EXPECT_EQ(written(), "");
}

}  // namespace
}  // namespace headlab
