// The same bits for any number of threads, for repeats, and beside other trainings.
#include <cstdlib>
#include <thread>

#include "framework/core/parallel.h"
#include "framework/data/copy.h"
#include "framework/data/roles.h"
#include "framework/train/verify.h"
#include "tests/support/training.h"

namespace headlab {
namespace {

RunConfig roles_config(std::int64_t heads, std::int64_t batch, std::int64_t steps) {
  RunConfig config = config_of(RolesTask(), steps, 5);
  config.needs.heads = heads;
  config.needs.dropout = 0.1;
  config.recipe.batch = batch;
  return config;
}

struct Case {
  std::int64_t heads, batch;
};

class SameBits : public testing::TestWithParam<Case> {};

TEST_P(SameBits, ForAnyThreadsAndRepeats) {
  const bool slow = std::getenv("HEADLAB_SLOW") != nullptr;
  const RolesTask task;
  const RunConfig config = roles_config(GetParam().heads, GetParam().batch, slow ? 200 : 60);
  set_threads(1);
  const Trained want = train_new(task, config);
  const int repeats = slow ? 3 : 1;
  for (const int threads : {1, 2, 4, 8}) {
    set_threads(threads);
    reset_parallel_counters();
    for (int repeat = 0; repeat < repeats; ++repeat) {
      const Trained got = train_new(task, config);
      EXPECT_EQ(got.result.losses, want.result.losses) << threads << " threads";
      EXPECT_EQ(got.result.evaluation.loss, want.result.evaluation.loss) << threads << " threads";
      expect_same_parameters(*got.model, *want.model);
    }
    if (threads > 1) {
      EXPECT_GT(parallel_counters().parallel_loops, 0) << "too small to be parallel";
    }
  }
  set_threads(0);
}

INSTANTIATE_TEST_SUITE_P(HeadsAndBatch, SameBits,
                         testing::Values(Case{1, 1}, Case{1, 7}, Case{4, 1}, Case{4, 7}),
                         [](const testing::TestParamInfo<Case>& instance) {
                           return "heads" + std::to_string(instance.param.heads) + "batch" +
                                  std::to_string(instance.param.batch);
                         });

TEST(TwoTrainersInOneProcess, DoNotDisturbEachOther) {
  const RolesTask roles;
  const CopyTask copy;
  const RunConfig first = roles_config(4, 7, 25);
  RunConfig second = config_of(copy, 12);
  second.needs.dropout = 0.2;
  const Trained want_first = train_new(roles, first);
  const Trained want_second = train_new(copy, second);
  for (const int threads : {1, 4}) {
    set_threads(threads);
    for (int repeat = 0; repeat < 2; ++repeat) {
      Trained got_first;
      Trained got_second;
      std::thread one([&] { got_first = train_new(roles, first); });
      std::thread two([&] {
        const OneThread side_by_side;
        got_second = train_new(copy, second);
      });
      one.join();
      two.join();
      EXPECT_EQ(got_first.result.losses, want_first.result.losses);
      EXPECT_EQ(got_second.result.losses, want_second.result.losses);
      expect_same_parameters(*got_first.model, *want_first.model);
      expect_same_parameters(*got_second.model, *want_second.model);
    }
  }
  set_threads(0);
}

TEST(VerifyChecksum, IsTheSameForAnyThreads) {
  set_threads(1);
  const std::uint64_t want = verify_checksum(build_model);
  for (const int threads : {1, 2, 3, 4, 8}) {
    set_threads(threads);
    EXPECT_EQ(verify_checksum(build_model), want) << threads << " threads";
  }
  set_threads(0);
  // 0: not fixed yet.
  EXPECT_EQ(want, expected_checksum);
}

}  // namespace
}  // namespace headlab
