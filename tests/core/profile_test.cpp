#include "framework/core/profile.h"

#include <thread>

#include <gtest/gtest.h>

#include "framework/core/parallel.h"
#include "tests/support/errors.h"

namespace headlab {
namespace {

using profile::Pass;
using profile::Profile;
using profile::Recording;
using profile::Scope;

struct Layer {
  std::string path() const { return name; }
  std::string name;
};

const profile::Line* find(const Profile& profile, const std::string& op, Pass pass,
                          const std::string& layer) {
  for (const profile::Line& line : profile.lines) {
    if (line.op == op && line.pass == pass && line.layer == layer) return &line;
  }
  return nullptr;
}

TEST(Profile, NothingIsRecordedWhileNobodyAsks) {
  EXPECT_FALSE(profile::on());
  {
    const Scope scope("lost");
    profile::lap("lost");
  }
  Recording recording;
  EXPECT_TRUE(profile::on());
  EXPECT_TRUE(recording.stop().lines.empty());
  EXPECT_FALSE(profile::on());
}

TEST(Profile, LapsBelongToTheInnermostLayerAndPass) {
  Recording recording;
  {
    const Scope step("step");
    {
      const profile::LayerScope outer(Layer{"a"});
      profile::lap("add");
      {
        const profile::LayerScope inner(Layer{"a.b"});
        profile::lap("linear");
        profile::lap("linear");
      }
      profile::lap("add");
    }
    const Scope node("linear", Pass::backward, profile::detail::id_of("a.b"));
    profile::lap("copy");
  }
  const Profile profile = recording.stop();
  ASSERT_NE(find(profile, "add", Pass::forward, "a"), nullptr);
  EXPECT_EQ(find(profile, "add", Pass::forward, "a")->calls, 2);
  ASSERT_NE(find(profile, "linear", Pass::forward, "a.b"), nullptr);
  EXPECT_EQ(find(profile, "linear", Pass::forward, "a.b")->calls, 2);
  EXPECT_NE(find(profile, "linear", Pass::backward, "a.b"), nullptr);
  EXPECT_NE(find(profile, "copy", Pass::backward, "a.b"), nullptr);
  EXPECT_EQ(find(profile, "step", Pass::none, "")->calls, 1);
  EXPECT_EQ(profile.lines.size(), 7u);  // and the two layers themselves
}

// Times are of one clock, and each nanosecond of a scope belongs to one line.
TEST(Profile, PartsAddUpToTheWholeAndEventsNest) {
  Recording recording;
  {
    const Scope step("step");
    for (int i = 0; i < 50; ++i) {
      const profile::LayerScope layer(Layer{"l" + std::to_string(i % 3)});
      profile::lap("one");
      const Scope node("two", Pass::backward);
      profile::lap("three");
    }
  }
  const Profile profile = recording.stop();
  double sum = 0;
  for (const profile::Line& line : profile.lines) {
    EXPECT_GE(line.seconds, 0);
    sum += line.seconds;
  }
  const profile::Event& step = profile.events.back();
  EXPECT_EQ(profile::name_of(step.op), "step");
  EXPECT_NEAR(sum, static_cast<double>(step.end - step.begin) * 1e-9, 1e-9);
  EXPECT_LE(sum, profile.seconds);
  ASSERT_EQ(profile.events.size(), 201u);
  for (const profile::Event& a : profile.events) {
    for (const profile::Event& b : profile.events) {
      const bool apart = a.end <= b.begin || b.end <= a.begin;
      const bool inside = (a.begin <= b.begin && b.end <= a.end) || (b.begin <= a.begin && a.end <= b.end);
      EXPECT_TRUE(apart || inside);
    }
  }
}

TEST(Profile, WorkOfOtherThreadsCountsForTheScopeThatWaitsForThem) {
  Recording recording;
  {
    const Scope outer("outer");
    profile::count(3, 5);
    const Scope inner("inner");
    parallel_for(1000, 1, {.flops = 1e9}, [](std::int64_t, std::int64_t) { profile::count(2, 7); });
    profile::moved<double>(2, 10);
  }
  const Profile profile = recording.stop();
  EXPECT_EQ(find(profile, "inner", Pass::none, "")->flops, 2000);
  EXPECT_EQ(find(profile, "inner", Pass::none, "")->bytes, 7160);
  EXPECT_EQ(find(profile, "outer", Pass::none, "")->flops, 3);  // its own; the span has all
  EXPECT_EQ(profile.events.back().flops, 2003);
}

TEST(Profile, OnlyTheThreadThatAskedIsRecorded) {
  Recording recording;
  std::thread other([] {
    const Scope scope("elsewhere");
    profile::lap("elsewhere");
    EXPECT_EQ(profile::layer(), 0);
  });
  other.join();
  EXPECT_TRUE(recording.stop().lines.empty());
}

TEST(Profile, OneAtATimeAndScopesMayOutliveIt) {
  auto recording = std::make_unique<Recording>();
  EXPECT_EQ(error_of([] { Recording second; }), "profile: another recording is under way");
  auto scope = std::make_unique<Scope>("open");
  recording.reset();
  Recording next;
  scope.reset();  // of the recording before: no line of this one
  EXPECT_TRUE(next.stop().lines.empty());
}

TEST(Profile, EventsAreLimitedAndLinesAreNot) {
  Recording recording;
  for (std::size_t i = 0; i < profile::most_events + 3; ++i) profile::lap("op");
  const Profile profile = recording.stop();
  EXPECT_EQ(profile.events.size(), profile::most_events);
  EXPECT_EQ(profile.left_out, 3);
  EXPECT_EQ(profile.lines[0].calls, static_cast<std::int64_t>(profile::most_events) + 3);
}

}  // namespace
}  // namespace headlab
