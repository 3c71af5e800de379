#include "framework/files/lock.h"

#include <atomic>
#include <csignal>
#include <thread>

#include <unistd.h>

#include "tests/support/child.h"
#include "tests/support/errors.h"
#include "tests/support/temporary_folder.h"

namespace headlab {
namespace {

TEST(FolderLock, ExcludesOthersWhileItLives) {
  const TemporaryFolder folder;
  const auto try_in_child = [&] {
    return in_child([&] { return FolderLock::try_lock(folder.path()) ? "taken" : "busy"; });
  };
  {
    const FolderLock lock(folder.path());
    EXPECT_EQ(try_in_child(), "busy");
    EXPECT_FALSE(FolderLock::try_lock(folder.path()).has_value());
  }
  EXPECT_EQ(try_in_child(), "taken");
  EXPECT_TRUE(FolderLock::try_lock(folder.path()).has_value());
}

TEST(FolderLock, MovesWithItsOwner) {
  const TemporaryFolder folder;
  auto lock = FolderLock::try_lock(folder.path());
  ASSERT_TRUE(lock.has_value());
  const FolderLock owner = std::move(*lock);
  lock.reset();
  EXPECT_FALSE(FolderLock::try_lock(folder.path()).has_value());
}

TEST(FolderLock, IsGivenUpByAKilledProcess) {
  const TemporaryFolder folder;
  EXPECT_EQ(in_child([&] {
              const FolderLock lock(folder.path());
              ::raise(SIGKILL);
              return "alive";
            }),
            "signal 9");
  EXPECT_TRUE(FolderLock::try_lock(folder.path()).has_value());
}

TEST(FolderLock, WaitsForItsTurn) {
  const TemporaryFolder folder;
  std::atomic<int> inside{0};
  std::atomic<int> rounds{0};
  std::atomic<bool> crowded{false};
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 20; ++i) {
        const FolderLock lock(folder.path());
        if (inside.fetch_add(1) != 0) crowded = true;
        ++rounds;
        std::this_thread::yield();
        inside.fetch_sub(1);
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_FALSE(crowded);
  EXPECT_EQ(rounds, 60);
}

TEST(FolderLock, SaysWhyAFolderCannotBeLocked) {
  const TemporaryFolder folder;
  EXPECT_EQ(error_of([&] { FolderLock lock(folder / "missing"); }),
            (folder / "missing/.lock").string() + ": cannot create: No such file or directory");
  EXPECT_EQ(error_of([&] { FolderLock::try_lock("/proc"); }),
            "/proc/.lock: cannot create: No such file or directory");
}

}  // namespace
}  // namespace headlab
