#include <nlohmann/json.hpp>

#include "tests/integration/process.h"

namespace headlab {
namespace {

/// A text of 60 sentences, trained for some steps.
class TextRun : public Integration {
 protected:
  void SetUp() override {
    std::ofstream file(folder_ / "müller.txt");
    for (int i = 0; i < 60; ++i) file << "Der Müller mahlt " << i << " Säcke am Tag.\n";
    file.close();
    const Ended run = headlab(
        {"train", "müller.txt", "--steps", "30", "--d-model", "16", "--layers", "1", "--context", "16"});
    ASSERT_EQ(run.status, 0) << run.err;
    EXPECT_NE(run.out.find("headlab sample"), std::string::npos) << run.out;
  }
  const std::string run_ = "runs/müller";
};

TEST_F(TextRun, WritesOnTheSameWayForTheSameSeed) {
  const auto sample = [&](std::vector<std::string> more) {
    more.insert(more.begin(), {"sample", run_, "--tokens", "50"});
    const Ended ended = headlab(more);
    EXPECT_EQ(ended.status, 0) << ended.err;
    return ended.out;
  };
  const std::string text = sample({"--prompt", "Der M"});
  EXPECT_EQ(text.find("Der M"), 0u);
  EXPECT_EQ(sample({"--prompt", "Der M"}), text);
  EXPECT_NE(sample({"--prompt", "Der M", "--seed", "1"}), text);
  EXPECT_EQ(sample({"--temperature", "0", "--seed", "1"}), sample({"--top-k", "1", "--seed", "2"}));
  const auto json = nlohmann::json::parse(sample({"--prompt", "Der M", "--json"}));
  EXPECT_EQ("Der M" + json.at("text").get<std::string>(),
            text.substr(0, text.find_last_not_of('\n') + 1) +
                (json["text"].get<std::string>().back() == '\n' ? "\n" : ""));
}

TEST_F(TextRun, NamesACharacterThatTheTextDoesNotHave) {
  const Ended ended = headlab({"sample", run_, "--prompt", "Der Ω"});
  EXPECT_EQ(ended.status, 2);
  EXPECT_EQ(ended.out, "");
  EXPECT_NE(ended.err.find("--prompt: character 'Ω' at offset 4"), std::string::npos) << ended.err;
  EXPECT_EQ(headlab({"sample", run_, "--prompt", ""}).err, "headlab sample: --prompt: is empty\n");
}

TEST_F(TextRun, ByteRunsResumeAsSuch) {
  const Ended first = headlab({"train", "müller.txt", "--bytes", "--steps", "20", "--d-model", "16",
                               "--layers", "1", "--context", "16", "--out", "bytes"});
  ASSERT_EQ(first.status, 0) << first.err;
  const Ended again = headlab({"train", "--resume", "bytes"});
  EXPECT_EQ(again.status, 0) << again.err;
  EXPECT_EQ(headlab({"inspect", run_}).status, 0);
}

TEST_F(TextRun, BrokenTextsAreRefused) {
  std::ofstream(folder_ / "broken.txt") << "abc\xff";
  const Ended broken = headlab({"train", "broken.txt"});
  EXPECT_EQ(broken.status, 2);
  EXPECT_NE(broken.err.find("offset 3"), std::string::npos) << broken.err;
  EXPECT_FALSE(std::filesystem::exists(folder_ / "runs/broken"));
  EXPECT_EQ(headlab({"train", "missing.txt"}).status, 2);
}

}  // namespace
}  // namespace headlab
