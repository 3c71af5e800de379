#include "framework/data/text_task.h"

#include <filesystem>
#include <fstream>
#include <set>

#include <gtest/gtest.h>

#include "tests/data/support.h"

namespace headlab {
namespace {

/// n distinct code points, so that a token is its own position.
std::string distinct(std::int64_t n) {
  std::string text;
  for (std::int64_t i = 0; i < n; ++i) {
    const std::int64_t code = 0x800 + i;
    text += static_cast<char>(0xE0 | code >> 12);
    text += static_cast<char>(0x80 | (code >> 6 & 0x3F));
    text += static_cast<char>(0x80 | (code & 0x3F));
  }
  return text;
}

TEST(Text, TrainingWindowsLieAnywhereInTheFirstNineTenths) {
  const TextTask task(distinct(131), {.context = 7});
  EXPECT_EQ(task.training_tokens(), 117);
  EXPECT_EQ(task.held_out_tokens(), 14);
  const Batch batch = task.batch(1, 0, 3000);
  std::set<std::int64_t> starts;
  for (std::int64_t b = 0; b < batch.size(); ++b) {
    starts.insert(at(batch.inputs[0], b, 0));
    for (std::int64_t t = 0; t < 7; ++t) {
      EXPECT_EQ(at(batch.inputs[0], b, t), at(batch.inputs[0], b, 0) + t);
      EXPECT_EQ(at(batch.targets, b, t), at(batch.inputs[0], b, t) + 1);
    }
  }
  // 117 tokens hold windows of 7 and the next token from 0 to 109.
  EXPECT_EQ(starts.size(), 110U);
  EXPECT_EQ(*starts.rbegin(), 109);
}

TEST(Text, HeldOutWindowsStandSideBySideInTheLastTenth) {
  const TextTask task(distinct(311), {.context = 7});
  EXPECT_EQ(task.held_out_tokens(), 32);
  EXPECT_EQ(task.held_out_size(), 4);
  const Batch batch = task.held_out(5, 0, 4);
  for (std::int64_t b = 0; b < 4; ++b) {
    for (std::int64_t t = 0; t < 7; ++t) {
      EXPECT_EQ(at(batch.inputs[0], b, t), 279 + b * 7 + t);
      EXPECT_EQ(at(batch.targets, b, t), 279 + b * 7 + t + 1);
    }
  }
  EXPECT_EQ(numbers(batch), numbers(task.held_out(6, 0, 4)));
  const Batch score = task.held_out(5, 0, 2, HeldOut::score);
  EXPECT_EQ(at(score.inputs[0], 0, 0), 279 + 2 * 7);
}

TEST(Text, IsAPureFunctionOfSeedAndStep) {
  const TextTask task(distinct(1009), {.context = 11});
  const std::vector<double> once = numbers(task.batch(5, 3, 7));
  EXPECT_EQ(once, numbers(task.batch(5, 3, 7)));
  EXPECT_NE(once, numbers(task.batch(5, 4, 7)));
  EXPECT_NE(once, numbers(task.batch(6, 3, 7)));
  EXPECT_EQ(task.batch(5, 3, 0).inputs[0].shape(), Shape({0, 11}));
}

TEST(Text, RefusesTextsThatAreTooShort) {
  EXPECT_EQ(TextTask(distinct(71), {.context = 7}).held_out_size(), 1);
  EXPECT_EQ(
      message_of([] { TextTask(distinct(70), {.context = 7}, "a.txt"); }),
      "a.txt: 70 tokens are too few for context 7: the last tenth has 7 and must have more than the context");
  EXPECT_EQ(message_of([] { TextTask("", {}, "a.txt"); }), "a.txt: the text is empty");
  EXPECT_EQ(message_of([] { TextTask("abc", {.context = 0}, "a.txt"); }), "a.txt: context 0 is below 1");
  EXPECT_EQ(TextTask(distinct(11), {.context = 1}).held_out_size(), 1);
}

TEST(Text, ReadsFilesAndNamesThemInErrors) {
  const std::filesystem::path folder = std::filesystem::path(testing::TempDir()) / "headlab_text_test";
  std::filesystem::create_directories(folder);
  const std::string missing = (folder / "missing.txt").string();
  EXPECT_EQ(message_of([&] { TextTask::open(missing); }),
            missing + ": cannot open the text: No such file or directory");
  EXPECT_EQ(message_of([&] { TextTask::open(folder.string()); }),
            folder.string() + ": cannot read the text: Is a directory");
  const std::string path = (folder / "a.txt").string();
  std::ofstream(path, std::ios::binary).flush();
  EXPECT_EQ(message_of([&] { TextTask::open(path); }), path + ": the text is empty");
  std::ofstream(path, std::ios::binary) << "abc\xFF" << std::string(200, 'x');
  EXPECT_EQ(message_of([&] { TextTask::open(path); }),
            path + ": not UTF-8: byte 0xff at offset 3 starts no character");
  const TextTask bytes = TextTask::open(path, {.unit = TextUnit::byte, .context = 5});
  EXPECT_EQ(bytes.training_tokens() + bytes.held_out_tokens(), 204);
  EXPECT_EQ(bytes.vocabulary()->size(), 5);
  std::filesystem::remove_all(folder);
}

TEST(Text, TakesTheVocabularyOfAnEarlierRun) {
  const TextVocabulary vocabulary = TextVocabulary::of("abcxyz", TextUnit::code_point);
  const std::string text(100, 'y');
  const TextTask task(text, {.context = 3, .vocabulary = vocabulary});
  EXPECT_EQ(task.needs().streams[0].vocabulary, 6);
  EXPECT_EQ(at(task.batch(0, 0, 1).inputs[0], 0, 0), 4);
  EXPECT_EQ(message_of([&] { TextTask("a?" + text, {.context = 3, .vocabulary = vocabulary}, "b.txt"); }),
            "b.txt: character '?' at offset 1 is not among the 6 of the vocabulary");
}

TEST(Text, NeedsTheSmallGptOfNanoGpt) {
  std::string text;
  for (int c = 0; c < 65; ++c) text += static_cast<char>(32 + c);
  for (int i = 0; i < 10; ++i) text += text.substr(0, 65);
  const TextTask task(text);
  const Needs needs = task.needs();
  EXPECT_EQ(needs.parameters(), 65 * 128 + 64 * 128 + 4 * (12 * 128 * 128 + 2 * 128) + 128);
  EXPECT_EQ(needs.parameters(), 804096);
  EXPECT_TRUE(needs.tied_readout && needs.causal && needs.smaller_residual_weights);
  EXPECT_EQ(task.recipe().warmup(2000), 100);
  EXPECT_EQ(task.labels(task.held_out(0, 0, 1), 0).size(), 64U);
  EXPECT_EQ(task.token_text(0, 1), "!");
  EXPECT_EQ(task.delimiters().size(), 14U);
  EXPECT_NEAR(task.chance(), 1.0 / 65, 0.002);
}

}  // namespace
}  // namespace headlab
