// Killed while saving, at random moments.
#include <csignal>
#include <cstdlib>
#include <filesystem>

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "framework/core/random.h"
#include "framework/files/atomic_file.h"
#include "framework/files/safetensors.h"
#include "tests/support/temporary_folder.h"

namespace headlab {
namespace {

constexpr std::int64_t numbers = 30'011;

void save(const std::filesystem::path& path, std::int64_t step) {
  write_safetensors(path,
                    {{"weights", Array::full({numbers}, static_cast<double>(step))},
                     {"moments", Array::full({numbers}, static_cast<double>(step), DType::f64)}},
                    {{"step", std::to_string(step)}});
}

// The step of a checkpoint that is whole.
std::int64_t load(const std::filesystem::path& path) {
  const Safetensors content = read_safetensors(path);
  const std::int64_t step = std::stoll(content.metadata.at("step"));
  for (const char* name : {"weights", "moments"}) {
    const Array& array = content.arrays.at(name);
    EXPECT_EQ(array.size(), numbers);
    for (std::int64_t i = 0; i < array.size(); ++i) {
      check(array.at(i) == static_cast<double>(step), name, "{} at {}, step {}", array.at(i), i, step);
    }
  }
  return step;
}

// Saves step after step, from where the file stands, and tells each finished one through the pipe.
[[noreturn]] void save_for_ever(const std::filesystem::path& path, int pipe) {
  try {
    for (std::int64_t step = load(path) + 1;; ++step) {
      save(path, step);
      if (::write(pipe, &step, sizeof step) != sizeof step) std::_Exit(1);
    }
  } catch (...) {
    std::_Exit(2);
  }
}

void sleep_microseconds(std::int64_t microseconds) {
  const timespec time{0, microseconds * 1000};
  ::nanosleep(&time, nullptr);
}

TEST(KilledWhileSaving, AlwaysLeavesTheNewestWholeCheckpoint) {
  const TemporaryFolder folder;
  const auto path = folder / "last.safetensors";
  save(path, 0);
  const int rounds = std::getenv("HEADLAB_SLOW") ? 50 : 5;
  Random random(static_cast<std::uint64_t>(::getpid()), Stream::evaluation);
  int stale = 0;
  std::int64_t before = 0;
  for (int round = 0; round < rounds; ++round) {
    int ends[2];
    ASSERT_EQ(::pipe(ends), 0);
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) save_for_ever(path, ends[1]);
    ::close(ends[1]);
    std::int64_t finished = 0;
    ASSERT_EQ(::read(ends[0], &finished, sizeof finished), static_cast<ssize_t>(sizeof finished));
    sleep_microseconds(random.below(20'000));
    ::kill(child, SIGKILL);
    int status = 0;
    ::waitpid(child, &status, 0);
    ASSERT_TRUE(WIFSIGNALED(status)) << "the child met an error, status " << WEXITSTATUS(status);
    while (::read(ends[0], &finished, sizeof finished) == static_cast<ssize_t>(sizeof finished)) {
    }
    ::close(ends[0]);

    const std::int64_t step = load(path);
    EXPECT_GT(step, before);
    EXPECT_GE(step, finished);
    EXPECT_LE(step, finished + 1);
    before = step;
    stale += remove_stale_temporaries(folder.path());
    for (const auto& entry : std::filesystem::directory_iterator(folder.path())) {
      EXPECT_EQ(entry.path().filename(), "last.safetensors");
    }
  }
  RecordProperty("stale_temporaries", stale);
}

}  // namespace
}  // namespace headlab
