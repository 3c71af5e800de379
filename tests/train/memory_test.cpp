// What a training keeps from step to step.
#include <fstream>

#include <unistd.h>

#include "framework/core/pool.h"
#include "tests/support/training.h"

namespace headlab {
namespace {

/// Live objects after each step.
class Live : public Observer {
 public:
  void on_step(Model&, const StepReport&) override {
    const GraphCounters graph = graph_counters();
    const pool::Counters memory = pool::counters();
    seen.push_back({graph.tensors, graph.nodes, memory.live_blocks, memory.live_bytes});
  }
  std::vector<std::vector<std::int64_t>> seen;
};

TEST(Train, KeepsNoGraphMemory) {
  const TinyTask task;
  RunConfig config = config_of(task, 30);
  config.needs.dropout = 0.1;
  config.accumulation = 2;
  Live live;
  TrainOptions options;
  options.evaluate_every = 7;
  options.observers = {&live};
  train_new(task, config, options);
  for (std::size_t i = 2; i < live.seen.size(); ++i) EXPECT_EQ(live.seen[i], live.seen[1]) << i;
  EXPECT_EQ(live.seen[1][1], 0) << "nodes";
}

/// Memory of the process that is really there, in bytes.
class Resident : public Observer {
 public:
  void on_step(Model&, const StepReport& report) override {
    if (report.step == 100 || report.step == 1000) seen.push_back(bytes());
  }
  std::vector<std::int64_t> seen;

 private:
  static std::int64_t bytes() {
    std::int64_t whole = 0;
    std::int64_t resident = 0;
    std::ifstream("/proc/self/statm") >> whole >> resident;
    return resident * ::sysconf(_SC_PAGESIZE);
  }
};

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool sanitized = true;
#elif defined(__has_feature)
constexpr bool sanitized = __has_feature(address_sanitizer) || __has_feature(thread_sanitizer);
#else
constexpr bool sanitized = false;
#endif

TEST(Train, DoesNotGrow) {
  if (sanitized) GTEST_SKIP() << "sanitizers keep freed memory";
  const TinyTask task;
  Resident resident;
  TrainOptions options;
  options.observers = {&resident};
  train_new(task, config_of(task, 1000), options);
  ASSERT_EQ(resident.seen.size(), 2U);
  EXPECT_LT(resident.seen[1] - resident.seen[0], 5 << 20);
}

}  // namespace
}  // namespace headlab
