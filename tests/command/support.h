// Running the command inside the test, in an empty folder.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "framework/command/run.h"
#include "framework/core/parallel.h"
#include "framework/data/induction.h"
#include "framework/data/offsets.h"
#include "framework/data/roles.h"
#include "models/build.h"
#include "tests/support/temporary_folder.h"

namespace headlab {

struct Outcome {
  int status = 0;
  std::string out, err;
};

class CommandTest : public testing::Test {
 protected:
  CommandTest() : before_(std::filesystem::current_path()) {
    std::filesystem::current_path(folder_.path());
    ::setenv("LC_ALL", "C.UTF-8", 1);
  }
  ~CommandTest() override {
    std::filesystem::current_path(before_);
    set_threads(0);
  }

  static Outcome run(std::vector<std::string> arguments) {
    Catalogue catalogue;
    catalogue.build_with(build_model)
        .add(std::make_shared<OffsetsTask>())
        .add(std::make_shared<RolesTask>())
        .add(std::make_shared<InductionTask>());
    for (const KnownLayer& layer : built_in_layers()) catalogue.add(layer);
    arguments.insert(arguments.begin(), "headlab");
    std::vector<char*> pointers;
    for (std::string& argument : arguments) pointers.push_back(argument.data());
    pointers.push_back(nullptr);
    testing::internal::CaptureStdout();
    testing::internal::CaptureStderr();
    Outcome outcome;
    outcome.status = run_command(static_cast<int>(arguments.size()), pointers.data(), catalogue);
    outcome.out = testing::internal::GetCapturedStdout();
    outcome.err = testing::internal::GetCapturedStderr();
    return outcome;
  }

  /// Refused as a mistake of usage: one line on standard error, nothing else anywhere.
  void expect_usage(const std::vector<std::string>& arguments, const std::string& line) {
    const Outcome outcome = run(arguments);
    EXPECT_EQ(outcome.status, 2);
    EXPECT_EQ(outcome.out, "");
    EXPECT_EQ(outcome.err, line + "\n");
    EXPECT_TRUE(std::filesystem::is_empty(folder_.path())) << line;
  }

  TemporaryFolder folder_;

 private:
  std::filesystem::path before_;
};

}  // namespace headlab
