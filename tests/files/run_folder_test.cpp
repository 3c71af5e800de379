#include "framework/files/run_folder.h"

#include <fstream>

#include <nlohmann/json.hpp>

#include "framework/files/atomic_file.h"
#include "framework/files/json_file.h"
#include "tests/support/errors.h"
#include "tests/support/temporary_folder.h"

namespace headlab {
namespace {

TEST(RunFolder, HasTheDocumentedLayout) {
  const TemporaryFolder folder;
  const auto path = folder / "runs/one";
  const RunFolder run = RunFolder::create(path);
  EXPECT_EQ(run.path(), path);
  EXPECT_EQ(run.config(), path / "config.json");
  EXPECT_EQ(run.metrics(), path / "metrics.jsonl");
  EXPECT_EQ(run.last_checkpoint(), path / "checkpoints/last.safetensors");
  EXPECT_EQ(run.best_checkpoint(), path / "checkpoints/best.safetensors");
  EXPECT_EQ(run.snapshot(123), path / "snapshots/step-000123.safetensors");
  EXPECT_EQ(run.snapshot(12'345'678), path / "snapshots/step-12345678.safetensors");
  EXPECT_EQ(run.heads(), path / "heads.safetensors");
  EXPECT_EQ(run.report(), path / "report.html");
  EXPECT_TRUE(std::filesystem::is_directory(path / "checkpoints"));
  EXPECT_TRUE(std::filesystem::is_directory(path / "snapshots"));
}

TEST(RunFolder, ConfigGoesRound) {
  const TemporaryFolder folder;
  const RunFolder run = RunFolder::create(folder / "one");
  EXPECT_FALSE(RunFolder::is_run(run.path()));
  const nlohmann::json config = {{"heads", 4}, {"name", "größer \"als\" \\"}, {"rate", 0.1}};
  run.write_config(config);
  EXPECT_TRUE(RunFolder::is_run(run.path()));
  EXPECT_EQ(RunFolder::open(run.path()).read_config(), config);
}

TEST(RunFolder, RefusesAFolderThatHoldsARun) {
  const TemporaryFolder folder;
  RunFolder::create(folder / "one").write_config({{"heads", 4}});
  EXPECT_EQ(error_of([&] { RunFolder::create(folder / "one"); }),
            (folder / "one").string() +
                ": already holds a run (config.json is there); resume it or choose another folder");
  EXPECT_EQ(RunFolder::create(folder / "one", true).read_config().at("heads"), 4);
  EXPECT_EQ(error_of([&] { RunFolder::create(folder / "two", true); }),
            (folder / "two").string() + ": no such run folder");
}

TEST(RunFolder, IsCreatedOrRejectedWithPathAndReason) {
  const TemporaryFolder folder;
  std::ofstream(folder / "file") << "text";
  const auto file = (folder / "file").string();
  EXPECT_EQ(error_of([&] { RunFolder::create(file); }), file + ": cannot create the folder: Not a directory");
  EXPECT_EQ(error_of([&] { RunFolder::create(file + "/one"); }),
            file + "/one: cannot create the folder: Not a directory");
  EXPECT_EQ(error_of([&] { RunFolder::create("/proc/one"); }),
            "/proc/one: cannot create the folder: No such file or directory");
  // Exists, but nothing can be created in it, not even by root.
  EXPECT_EQ(error_of([&] { RunFolder::create("/proc/self"); }),
            "/proc/self/probe: cannot create: No such file or directory");
  EXPECT_EQ(error_of([&] { RunFolder::create(""); }), "run folder: the path is empty");
  EXPECT_EQ(read_file(file), "text");
}

TEST(RunFolder, OpeningSaysWhatWasLookedFor) {
  const TemporaryFolder folder;
  std::ofstream(folder / "file") << "text";
  EXPECT_EQ(error_of([&] { RunFolder::open(folder / "missing"); }),
            (folder / "missing").string() + ": no such run folder");
  EXPECT_EQ(error_of([&] { RunFolder::open(folder / "file"); }),
            (folder / "file").string() + ": is a file, not a run folder");
  EXPECT_EQ(error_of([&] { RunFolder::open(folder.path()); }),
            folder.path().string() + ": is no run folder: there is no config.json in it");
}

TEST(RunFolder, CreateRemovesStaleTemporaries) {
  const TemporaryFolder folder;
  const RunFolder run = RunFolder::create(folder / "one");
  run.write_config({});
  const auto stale = run.last_checkpoint().parent_path() / ".last.safetensors.12-0.headlab-tmp";
  std::ofstream(stale) << "half";
  RunFolder::create(folder / "one", true);
  EXPECT_FALSE(std::filesystem::exists(stale));
}

TEST(RunFolder, ListsSnapshotsByStep) {
  const TemporaryFolder folder;
  const RunFolder run = RunFolder::create(folder / "one");
  EXPECT_TRUE(run.snapshots().empty());
  for (const std::int64_t step : {2'000'000, 0, 300}) write_file(run.snapshot(step), "");
  for (const char* other : {"step-.safetensors", "step-1x.safetensors", "step--1.safetensors", "notes"}) {
    write_file(run.path() / "snapshots" / other, "");
  }
  const auto found = run.snapshots();
  ASSERT_EQ(found.size(), 3U);
  EXPECT_EQ(found[0], std::pair(std::int64_t{0}, run.snapshot(0)));
  EXPECT_EQ(found[1].first, 300);
  EXPECT_EQ(found[2].first, 2'000'000);
  EXPECT_EQ(error_of([&] { run.snapshot(-1); }), run.path().string() + ": a snapshot of step -1");
}

TEST(JsonFile, SaysWhereItIsNotJson) {
  const TemporaryFolder folder;
  const auto path = folder / "a.json";
  std::ofstream(path) << "{\"a\": nope}";
  EXPECT_EQ(error_of([&] { read_json(path); }), path.string() + ": not JSON at byte 8");
  EXPECT_EQ(error_of([&] { write_json(path, "\xff"); }),
            path.string() + ": cannot write: holds text that is not UTF-8");
}

}  // namespace
}  // namespace headlab
