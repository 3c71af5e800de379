#include "framework/files/atomic_file.h"

#include <filesystem>
#include <fstream>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/resource.h>

#include "tests/support/child.h"
#include "tests/support/errors.h"
#include "tests/support/temporary_folder.h"

namespace headlab {
namespace {

int entries(const std::filesystem::path& folder) {
  int count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(folder)) ++count;
  return count;
}

void limit_file_size(rlim_t bytes) {
  const rlimit limit{bytes, bytes};
  check(::setrlimit(RLIMIT_FSIZE, &limit) == 0, "test", "cannot set the limit");
}

TEST(AtomicFile, CreatesAndReplaces) {
  const TemporaryFolder folder;
  write_file(folder / "a", "first");
  EXPECT_EQ(read_file(folder / "a"), "first");
  write_file(folder / "a", "");
  EXPECT_EQ(read_file(folder / "a"), "");
  write_file(folder / "a", std::string(100'003, 'x'));
  EXPECT_EQ(read_file(folder / "a").size(), 100'003U);
  EXPECT_EQ(entries(folder.path()), 1);
}

TEST(AtomicFile, ThePreviousFileIsThereUntilTheCommit) {
  const TemporaryFolder folder;
  write_file(folder / "a", "old");
  {
    AtomicFile file(folder / "a");
    file.write("new");
    EXPECT_EQ(read_file(folder / "a"), "old");
    file.commit();
    EXPECT_EQ(read_file(folder / "a"), "new");
    EXPECT_EQ(error_of([&] { file.commit(); }), (folder / "a").string() + ": was committed already");
  }
  EXPECT_EQ(read_file(folder / "a"), "new");
}

TEST(AtomicFile, WithoutACommitNothingChanges) {
  const TemporaryFolder folder;
  write_file(folder / "a", "old");
  {
    AtomicFile file(folder / "a");
    file.write("new");
    EXPECT_EQ(entries(folder.path()), 2);
  }
  EXPECT_EQ(read_file(folder / "a"), "old");
  EXPECT_EQ(entries(folder.path()), 1);
}

TEST(AtomicFile, WorksWithABareName) {
  const TemporaryFolder folder;
  EXPECT_EQ(in_child([&] {
              std::filesystem::current_path(folder.path());
              write_file("bare", "text");
              return read_file("bare");
            }),
            "text");
}

TEST(AtomicFile, SaysWhyAFileCannotBeCreated) {
  const TemporaryFolder folder;
  const auto reason = [&](const std::filesystem::path& path) {
    const std::string text = error_of([&] { write_file(path, "text"); });
    EXPECT_EQ(text.substr(0, path.string().size() + 2), path.string() + ": ");
    return text.substr(std::min(text.size(), path.string().size() + 2));
  };
  EXPECT_EQ(reason(folder / "missing/a"), "cannot create: No such file or directory");
  write_file(folder / "file", "");
  EXPECT_EQ(reason(folder / "file/a"), "cannot create: Not a directory");
  EXPECT_EQ(reason(folder.path()), "cannot replace: not a regular file");
  EXPECT_EQ(reason("/proc/a"), "cannot create: No such file or directory");
  EXPECT_EQ(reason("/dev/full"), "cannot replace: not a regular file");
  EXPECT_EQ(reason(folder / std::string(300, 'n')), "cannot create: File name too long");
  EXPECT_EQ(reason(folder / ""), "cannot create: not the name of a file");
}

TEST(AtomicFile, AFileSizeLimitIsAnErrorAndKeepsThePreviousFile) {
  const TemporaryFolder folder;
  const auto path = folder / "a";
  write_file(path, "old");
  const std::string text = in_child([&] {
    limit_file_size(100'000);
    write_file(path, std::string(300'000, 'x'));
    return "no error";
  });
  EXPECT_EQ(text, "error: " + path.string() + ": cannot write: File too large");
  EXPECT_EQ(read_file(path), "old");
  EXPECT_EQ(entries(folder.path()), 1);
}

TEST(AtomicFile, ReadFileRefusesWhatIsNoRegularFile) {
  const TemporaryFolder folder;
  EXPECT_EQ(error_of([&] { read_file(folder / "a"); }),
            (folder / "a").string() + ": cannot open: No such file or directory");
  EXPECT_EQ(error_of([&] { read_file(folder.path()); }),
            folder.path().string() + ": cannot read: not a regular file");
  EXPECT_EQ(error_of([&] { read_file("/dev/zero"); }), "/dev/zero: cannot read: not a regular file");
  write_file(folder / "a", "12345");
  EXPECT_EQ(error_of([&] { read_file(folder / "a", 4); }),
            (folder / "a").string() + ": has 5 bytes, at most 4 are read");
  EXPECT_EQ(read_file(folder / "a", 5), "12345");
}

TEST(StaleTemporaries, AreRemovedAndNothingElse) {
  const TemporaryFolder folder;
  std::ofstream(folder / ".last.safetensors.12-0.headlab-tmp") << "half";
  std::ofstream(folder / ".last.safetensors.12-1.headlab-tmp") << "";
  std::ofstream(folder / "notes.headlab-tmp") << "not ours";
  std::ofstream(folder / "last.safetensors") << "whole";
  EXPECT_EQ(remove_stale_temporaries(folder.path()), 2);
  EXPECT_EQ(remove_stale_temporaries(folder.path()), 0);
  EXPECT_EQ(entries(folder.path()), 2);
}

TEST(StaleTemporaries, OneThatIsBeingWrittenStays) {
  const TemporaryFolder folder;
  AtomicFile file(folder / "a");
  file.write("text");
  EXPECT_EQ(remove_stale_temporaries(folder.path()), 0);
  file.commit();
  EXPECT_EQ(read_file(folder / "a"), "text");
}

TEST(StaleTemporaries, AMissingFolderIsAnError) {
  const TemporaryFolder folder;
  EXPECT_EQ(error_of([&] { remove_stale_temporaries(folder / "missing"); }),
            (folder / "missing").string() + ": cannot list: No such file or directory");
}

TEST(AtomicFile, ATemporaryOfAKilledProcessWithOurNumberIsNotInTheWay) {
  const TemporaryFolder folder;
  EXPECT_EQ(in_child([&] {
              for (int i = 0; i < 50; ++i) {
                std::ofstream(folder / fmt::format(".a.{}-{}.headlab-tmp", ::getpid(), i)) << "half";
              }
              write_file(folder / "a", "text");
              return read_file(folder / "a");
            }),
            "text");
}

}  // namespace
}  // namespace headlab
