#include "framework/sweep/ledger.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "framework/files/atomic_file.h"
#include "tests/support/errors.h"
#include "tests/support/temporary_folder.h"
#include "tests/sweep/support.h"

namespace headlab {
namespace {

TEST(Ledger, NamesARunAfterHeadsSeedAndTheHashOfItsOptions) {
  const PlannedRun run = plan_run(tiny_config(4, 2), 7);
  ASSERT_EQ(run.key.size(), 16u);
  EXPECT_EQ(run.key.find_first_not_of("0123456789abcdef"), std::string::npos);
  EXPECT_EQ(run.name, "h4-s2-" + run.key.substr(0, 8));
  EXPECT_EQ(plan_run(tiny_config(4, 2), 7).key, run.key);
}

TEST(Ledger, AnyChangeMakesAnotherRun) {
  const std::string key = plan_run(tiny_config(), 7, 1).key;
  EXPECT_NE(plan_run(tiny_config(2), 7, 1).key, key);
  EXPECT_NE(plan_run(tiny_config(1, 1), 7, 1).key, key);
  EXPECT_NE(plan_run(tiny_config(), 8, 1).key, key);
  EXPECT_NE(plan_run(tiny_config(), 7, 2).key, key);
  RunConfig config = tiny_config();
  config.recipe.learning_rate = 0.011;
  EXPECT_NE(plan_run(config, 7, 1).key, key);
}

TEST(Ledger, FingerprintFollowsTheData) {
  const std::uint64_t print = data_fingerprint(TinyTask(), tiny_config());
  EXPECT_EQ(data_fingerprint(TinyTask(), tiny_config(4)), print);
  EXPECT_NE(data_fingerprint(TinyTask({}, 2), tiny_config()), print);
  EXPECT_NE(data_fingerprint(TinyTask(), tiny_config(1, 1)), print);
}

TEST(Ledger, ARecordComesBackBitForBit) {
  const TemporaryFolder folder;
  RunRecord record = record_of(4, 2, 0.1 + 0.2);
  record.train_loss = 1.0 / 3;
  record.seconds = 1.5;
  record.parameters = 36352;
  record.head_size = 16;
  record.figures = HeadFigures{.9, .1, 4, 3, 2, 1, 4};
  record.curve = {3, 2.5, 1e-300};
  store_record(folder.path(), "0123", record);
  const RunRecord back = find_record(folder.path(), "0123").value();
  EXPECT_EQ(to_json(back), to_json(record));
  EXPECT_EQ(back.accuracy, record.accuracy);
  EXPECT_EQ(back.figures->distinct_offsets, 4);
  EXPECT_FALSE(find_record(folder.path(), "0124"));
}

TEST(Ledger, AFailedRecordKeepsItsReason) {
  const TemporaryFolder folder;
  RunRecord record = record_of(4, 2, 0);
  record.failure = "train: the loss of step 7 is nan";
  store_record(folder.path(), "0123", record);
  const RunRecord back = find_record(folder.path(), "0123").value();
  EXPECT_EQ(back.failure, record.failure);
  EXPECT_EQ(back.seed, 2u);
}

TEST(Ledger, NoRecordIsNoError) {
  const TemporaryFolder folder;
  EXPECT_FALSE(find_record(folder.path(), "0123"));
  EXPECT_FALSE(find_record(folder / "missing", "0123"));
}

TEST(Ledger, RefusesARecordThatIsNone) {
  const TemporaryFolder folder;
  const std::string path = (folder / "result.json").string();
  write_file(path, "[]");
  EXPECT_EQ(error_of([&] { find_record(folder.path(), "1"); }),
            path + ": is no run record: 'key' is missing");
  write_file(path, R"({"key": "1", "heads": 1, "seed": 0, "name": "x", "failure": null})");
  EXPECT_EQ(error_of([&] { find_record(folder.path(), "1"); }), path + ": run record: 'accuracy' is missing");
  write_file(path, R"({"key": "1", "heads": "one"})");
  EXPECT_EQ(error_of([&] { find_record(folder.path(), "1"); }),
            path + ": run record: 'heads' has the wrong type: string");
}

TEST(Ledger, ListsTheRunsOfTheSweepThatWasStartedLast) {
  const TemporaryFolder folder;
  const std::vector<PlannedRun> runs = {plan_run(tiny_config(1, 0), 7), plan_run(tiny_config(2, 1), 7)};
  create_sweep(folder / "a/b", "tiny", runs);
  EXPECT_TRUE(is_sweep(folder / "a/b"));
  EXPECT_FALSE(is_sweep(folder / "a"));
  const Ledger ledger = read_ledger(folder / "a/b");
  EXPECT_EQ(ledger.task, "tiny");
  ASSERT_EQ(ledger.runs.size(), 2u);
  EXPECT_EQ(ledger.runs[1].heads, 2);
  EXPECT_EQ(ledger.runs[1].seed, 1u);
  EXPECT_EQ(ledger.runs[1].name, runs[1].name);
  EXPECT_EQ(ledger.runs[1].key, runs[1].key);
}

TEST(Ledger, RefusesFoldersThatAreNoSweep) {
  const TemporaryFolder folder;
  const std::string path = folder.path().string();
  EXPECT_EQ(error_of([&] { read_ledger(path); }), path + ": is no sweep: there is no ledger.json in it");
  write_file(folder / "config.json", "{}");
  EXPECT_EQ(error_of([&] { create_sweep(path, "tiny", {}); }),
            path + ": holds a run (config.json is there); choose another folder for a sweep");
  EXPECT_EQ(error_of([] { create_sweep("", "tiny", {}); }), "sweep folder: the path is empty");
  write_file(folder / "ledger.json",
             R"({"task": "x", "runs": [{"heads": 1, "seed": 0, "name": "../x", "key": "1"}]})");
  EXPECT_EQ(error_of([&] { read_ledger(path); }), path + "/ledger.json: '../x' is no name of a folder");
}

}  // namespace
}  // namespace headlab
