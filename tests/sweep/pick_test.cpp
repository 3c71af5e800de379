#include "framework/sweep/pick.h"

#include <gtest/gtest.h>

#include "framework/files/atomic_file.h"
#include "framework/files/run_folder.h"
#include "framework/sweep/ledger.h"
#include "tests/support/errors.h"
#include "tests/support/temporary_folder.h"
#include "tests/sweep/support.h"

namespace headlab {
namespace {

std::vector<RunRecord> ladder() {
  std::vector<RunRecord> records;
  const auto level = [&](std::int64_t heads, const std::vector<double>& accuracies) {
    for (std::size_t seed = 0; seed < accuracies.size(); ++seed) {
      records.push_back(record_of(heads, seed, accuracies[seed]));
    }
  };
  level(16, {1, 1, 1, 1, 1});
  level(1, {.208, .203, .211, .211, .210});
  level(8, {.99, 1, .992, .998, .97});
  return records;
}

TEST(Pick, TakesTheMedianSeedOfTheFewestHeadsThatAreAsGoodAsAny) {
  const PickedRun picked = pick(ladder()).value();  // h=8: mean .99, within .01 of 1
  EXPECT_EQ(picked.record.heads, 8);
  EXPECT_EQ(picked.record.seed, 2u);  // .97 .99 [.992] .998 1
  EXPECT_EQ(picked.runs, 5);
  EXPECT_EQ(reason(picked), picked.record.name +
                                ": the median of 5 seeds by accuracy, at the fewest heads within 0.01 of the "
                                "best mean");
}

TEST(Pick, PassesOverALevelThatFallsShort) {
  std::vector<RunRecord> records = ladder();
  for (RunRecord& record : records) {
    if (record.heads == 8 && record.seed == 4) record.accuracy = .96;  // mean .988
  }
  EXPECT_EQ(pick(records)->record.heads, 16);
  EXPECT_EQ(pick(records)->record.seed, 2u);  // equal accuracies in the order of seeds
}

TEST(Pick, LeavesFailedRunsOut) {
  std::vector<RunRecord> records = ladder();
  for (RunRecord& record : records) {
    if (record.heads == 8 && record.seed >= 3) record.failure = "train: …";
  }
  EXPECT_EQ(pick(records)->record.seed, 2u);  // .99 [.992] 1
  EXPECT_EQ(pick(records)->runs, 3);
  for (RunRecord& record : records) record.failure = "train: …";
  EXPECT_FALSE(pick(records));
  EXPECT_FALSE(pick({}));
}

TEST(Pick, TakesTheLowerMedianOfAnEvenNumber) {
  const std::vector<RunRecord> records = {record_of(1, 0, .4), record_of(1, 1, .1), record_of(1, 2, .3),
                                          record_of(1, 3, .2)};
  EXPECT_EQ(pick(records)->record.seed, 3u);
}

TEST(Pick, ChoosesInTheFolderOfASweep) {
  const TemporaryFolder folder;
  std::vector<PlannedRun> runs;
  for (const RunRecord& record : ladder()) {
    runs.push_back(plan_run(tiny_config(record.heads, record.seed), 0));
  }
  create_sweep(folder.path(), "tiny", runs);
  EXPECT_EQ(error_of([&] { pick_run(folder.path()); }),
            folder.path().string() + ": no run of this sweep is finished");
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const RunFolder run = RunFolder::create(folder / runs[i].name);
    store_record(run.path(), runs[i].key, ladder()[i]);
  }
  // Runs of an earlier sweep, with other options, are not asked.
  store_record(RunFolder::create(folder / "h4-s0-00000000").path(), "0", record_of(4, 0, 1));
  const ChosenRun chosen = pick_run(folder.path());
  EXPECT_EQ(chosen.path, folder / plan_run(tiny_config(8, 2), 0).name);
  EXPECT_EQ(chosen.note, reason(*pick(ladder())));
  const std::vector<std::filesystem::path> level = pick_level(folder.path());
  ASSERT_EQ(level.size(), 5u);
  EXPECT_EQ(level[4], folder / plan_run(tiny_config(8, 4), 0).name);
}

TEST(Pick, ARunIsItself) {
  const TemporaryFolder folder;
  write_file(folder / "config.json", "{}");
  EXPECT_EQ(pick_run(folder.path()).path, folder.path());
  EXPECT_EQ(pick_run(folder.path()).note, "");
  EXPECT_EQ(pick_level(folder.path()), std::vector{folder.path()});
}

TEST(Pick, RefusesAFolderOfNeither) {
  const TemporaryFolder folder;
  const std::filesystem::path none = folder.path() / "none";
  EXPECT_EQ(error_of([&] { pick_run(none); }), none.string() + ": there is no such folder or file");
  EXPECT_EQ(
      error_of([&] { pick_run(folder.path()); }),
      folder.path().string() + ": is neither a run (no config.json in it) nor a sweep (no ledger.json)");
}

}  // namespace
}  // namespace headlab
