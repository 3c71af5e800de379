#include <nlohmann/json.hpp>

#include "tests/integration/process.h"

namespace headlab {
namespace {

using Arguments = std::vector<std::string>;

Arguments training(const std::string& out) { return {"train", "offsets", "--steps", "5", "--out", out}; }

TEST_F(Integration, ClosedOrFullStandardOutputIsAnError) {
  ASSERT_EQ(headlab(training("run")).status, 0);
  for (const Arguments& arguments : {Arguments{"--help"},
                                     {"train", "--help"},
                                     {"tasks"},
                                     {"tasks", "--json"},
                                     {"inspect", "run"},
                                     {"train", "--resume", "run"}}) {
    ProcessOptions full;
    full.output = "/dev/full";
    const Ended no_space = headlab(arguments, full);
    EXPECT_EQ(no_space.status, 1) << arguments[0];
    EXPECT_NE(no_space.err.find("standard output: No space left on device"), std::string::npos)
        << no_space.err;
    ProcessOptions closed;
    closed.close_output = true;
    const Ended no_output = headlab(arguments, closed);
    EXPECT_EQ(no_output.status, 1) << arguments[0];
    EXPECT_NE(no_output.err.find("standard output: is closed"), std::string::npos) << no_output.err;
  }
}

TEST_F(Integration, FoldersThatCannotBeWrittenAreRefusedBeforeTraining) {
  std::ofstream(folder_ / "file") << "x";
  for (const std::string& out :
       {std::string("/proc/headlab"), std::string("file"), std::string("file/run")}) {
    for (const Arguments& arguments :
         {training(out),
          Arguments{"ablate", "offsets", "--heads", "1", "--seeds", "1", "--steps", "5", "--out", out}}) {
      const Ended ended = headlab(arguments);
      EXPECT_EQ(ended.status, 1) << out;
      EXPECT_NE(ended.err.find(out), std::string::npos) << ended.err;
      EXPECT_EQ(ended.out, "");
    }
  }
  EXPECT_EQ(text_of(folder_ / "file"), "x");
}

TEST_F(Integration, AFileSizeLimitIsAnErrorAndNoSilentDeath) {
  ProcessOptions limited;
  limited.file_size = 100'000;  // a checkpoint of this model has 440 kB
  const Ended ended = headlab(training("run"), limited);
  EXPECT_EQ(ended.status, 1);
  EXPECT_NE(ended.err.find("File too large"), std::string::npos) << ended.err;
  EXPECT_NE(ended.err.find("run"), std::string::npos) << ended.err;
}

TEST_F(Integration, ALossThatIsNotFiniteStopsWithAMessage) {
  const Ended ended = headlab({"train", "offsets", "--steps", "50", "--lr", "100", "--out", "run"});
  EXPECT_EQ(ended.status, 1);
  EXPECT_NE(ended.err.find("headlab train: the loss of step "), std::string::npos) << ended.err;
}

TEST_F(Integration, VerifyGivesTheSameChecksumForAnyNumberOfThreads) {
  const Ended one = headlab({"verify", "--json", "--threads", "1"});
  ASSERT_EQ(one.status, 0) << one.out << one.err;
  const auto json = nlohmann::json::parse(one.out);
  for (const char* key : {"checksum", "numbers_version", "instructions", "compiler"})
    EXPECT_TRUE(json.contains(key));
  const Ended three = headlab({"verify", "--json", "--threads", "3"});
  EXPECT_EQ(three.out, one.out);
}

}  // namespace
}  // namespace headlab
