#include "framework/train/checkpoint.h"

#include <limits>

#include <nlohmann/json.hpp>

#include "framework/files/atomic_file.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/training.h"

namespace headlab {
namespace {

Checkpoint some_checkpoint() {
  Checkpoint checkpoint;
  checkpoint.config = config_of(TinyTask(), 17);
  checkpoint.step = 5;
  checkpoint.best_loss = 0.1 + 0.2;
  checkpoint.best_step = 3;
  checkpoint.vocabulary = TextVocabulary::of("h\xc3\xa9llo\n\"x", TextUnit::code_point);
  checkpoint.parameters["blocks.0.weight"] = Array::of<float>({2, 2}, {1, -0.0F, 1e-42F, 3});
  checkpoint.optimiser["adamw.step.blocks.0.weight"] = Array::of<std::int64_t>({}, {5});
  return checkpoint;
}

TEST(Checkpoint, ComesBackAsItWas) {
  const TemporaryFolder folder;
  const Checkpoint checkpoint = some_checkpoint();
  save_checkpoint(folder / "last.safetensors", checkpoint);
  const Checkpoint back = load_checkpoint(folder / "last.safetensors");
  EXPECT_EQ(to_json(back.config), to_json(checkpoint.config));
  EXPECT_EQ(back.step, 5);
  EXPECT_EQ(back.best_loss, 0.1 + 0.2);
  EXPECT_EQ(back.best_step, 3);
  EXPECT_TRUE(back.vocabulary == checkpoint.vocabulary);
  ASSERT_EQ(back.parameters.size(), 1U);
  EXPECT_TRUE(same_bits(back.parameters.at("blocks.0.weight"), checkpoint.parameters.at("blocks.0.weight")));
  ASSERT_EQ(back.optimiser.size(), 1U);
  EXPECT_EQ(back.optimiser.at("adamw.step.blocks.0.weight").item(), 5);
}

TEST(Checkpoint, NamesItsParametersByPathForOtherReaders) {
  const TemporaryFolder folder;
  save_checkpoint(folder / "last.safetensors", some_checkpoint());
  const Safetensors file = read_safetensors(folder / "last.safetensors");
  EXPECT_EQ(file.arrays.count("blocks.0.weight"), 1U);
  EXPECT_EQ(file.arrays.count("optimiser/adamw.step.blocks.0.weight"), 1U);
  EXPECT_EQ(file.metadata.at("format_version"), "1");
  EXPECT_EQ(file.metadata.at("vocabulary_unit"), "code_point");
}

TEST(Checkpoint, WithNumbersThatAreNotFiniteReplacesNothing) {
  const TemporaryFolder folder;
  const auto path = folder / "last.safetensors";
  save_checkpoint(path, some_checkpoint());
  Checkpoint bad = some_checkpoint();
  bad.step = 6;
  bad.parameters["blocks.0.weight"] = Array::full({2, 2}, std::numeric_limits<double>::quiet_NaN());
  EXPECT_EQ(error_of([&] { save_checkpoint(path, bad); }),
            path.string() + ": not saved: 'blocks.0.weight' holds nan");
  bad = some_checkpoint();
  bad.optimiser["adamw.m.x"] = Array::full({2}, HUGE_VAL, DType::f64);
  EXPECT_EQ(error_of([&] { save_checkpoint(path, bad); }),
            path.string() + ": not saved: 'optimiser/adamw.m.x' holds inf");
  EXPECT_EQ(load_checkpoint(path).step, 5);
}

TEST(Checkpoint, SaysWhatIsWrongWithAFile) {
  const TemporaryFolder folder;
  const auto path = folder / "last.safetensors";
  save_checkpoint(path, some_checkpoint());
  const Safetensors good = read_safetensors(path);
  const auto error_with = [&](const std::string& key, const std::string& value) {
    Metadata metadata = good.metadata;
    metadata[key] = value;
    if (value.empty()) metadata.erase(key);
    write_safetensors(path, good.arrays, metadata);
    return error_of([&] { load_checkpoint(path); }).substr(path.string().size());
  };
  EXPECT_EQ(error_with("format", "pt"), ": is not a checkpoint of headlab");
  EXPECT_EQ(error_with("format_version", "2"), ": has format version 2, this program reads 1");
  EXPECT_EQ(error_with("step", "five"), ": the checkpoint's step is 'five', not a number");
  EXPECT_EQ(error_with("step", "-5"), ": the checkpoint's step -5 is negative");
  EXPECT_EQ(error_with("step", ""), ": the checkpoint has no step");
  EXPECT_EQ(error_with("best_loss", "0.3x"), ": the checkpoint's best_loss is '0.3x', not a number");
  EXPECT_EQ(error_with("config", "{"), ": the checkpoint's config is not JSON");
  EXPECT_EQ(error_with("config", "{}"), ": task is missing");
  EXPECT_EQ(error_with("vocabulary", "[1]"), ": the checkpoint's vocabulary is not a list of texts");
  EXPECT_EQ(error_with("vocabulary_unit", "word"),
            ": the checkpoint's vocabulary_unit is neither byte nor code_point");
  write_file(path, "rubbish");
  EXPECT_THROW(load_checkpoint(path), Error);
}

TEST(SnapshotSteps, AreAtMostTwentyWithBothEnds) {
  for (const std::int64_t steps : {1, 2, 3, 7, 19, 20, 21, 100, 600, 2000, 1'000'000}) {
    const auto list = snapshot_steps(steps);
    EXPECT_LE(list.size(), 20U);
    EXPECT_EQ(list.front(), 0);
    EXPECT_EQ(list.back(), steps);
    for (std::size_t i = 1; i < list.size(); ++i) EXPECT_LT(list[i - 1], list[i]);
    if (steps >= 2) {
      EXPECT_EQ(list[1], 1);
    }
  }
  EXPECT_EQ(snapshot_steps(3), (std::vector<std::int64_t>{0, 1, 2, 3}));
  EXPECT_GE(snapshot_steps(600).size(), 15U);
}

}  // namespace
}  // namespace headlab
