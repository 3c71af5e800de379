#include "framework/files/line_log.h"

#include <fstream>

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "framework/files/atomic_file.h"
#include "tests/support/child.h"
#include "tests/support/errors.h"
#include "tests/support/temporary_folder.h"

namespace headlab {
namespace {

TEST(LineLog, AppendsAtOnceAndToWhatIsThere) {
  const TemporaryFolder folder;
  {
    LineLog log(folder / "log");
    log.append("one");
    EXPECT_EQ(read_file(folder / "log"), "one\n");
    log.append("");
    log.flush();
    log.close();
  }
  LineLog(folder / "log").append("three");
  EXPECT_EQ(read_lines(folder / "log"), (std::vector<std::string>{"one", "", "three"}));
}

TEST(LineLog, CutsOffAHalfLastLine) {
  const TemporaryFolder folder;
  std::ofstream(folder / "log") << "one\ntwo\nhal";
  EXPECT_EQ(read_lines(folder / "log").size(), 2U);
  LineLog(folder / "log").append("three");
  EXPECT_EQ(read_file(folder / "log"), "one\ntwo\nthree\n");
  std::ofstream(folder / "half") << "hal";
  LineLog(folder / "half").append("one");
  EXPECT_EQ(read_file(folder / "half"), "one\n");
}

TEST(LineLog, RefusesLinesInALine) {
  const TemporaryFolder folder;
  LineLog log(folder / "log");
  EXPECT_EQ(error_of([&] { log.append("a\nb"); }), (folder / "log").string() + ": a line holds a line feed");
  EXPECT_EQ(read_file(folder / "log"), "");
}

TEST(LineLog, AFullDiskIsAnError) {
  LineLog log("/dev/full");
  EXPECT_EQ(error_of([&] { log.append("x"); }), "/dev/full: cannot write: No space left on device");
}

TEST(LineLog, AFileSizeLimitIsAnErrorAndTakesTheLineBack) {
  const TemporaryFolder folder;
  const std::string text = in_child([&] {
    const rlimit limit{10, 10};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    LineLog log(folder / "log");
    log.append("12345");
    log.append("1234567");
    return "no error";
  });
  EXPECT_EQ(text, "error: " + (folder / "log").string() + ": cannot write: File too large");
  EXPECT_EQ(read_file(folder / "log"), "12345\n");
}

TEST(LineLog, AClosedStandardOutputIsAnError) {
  EXPECT_EQ(in_child([] {
              ::close(1);
              LineLog(1, "standard output").append("x");
              return "no error";
            }),
            "error: standard output: cannot open: Bad file descriptor");
}

TEST(LineLog, WritesToAStandardOutputThatIsOpen) {
  const TemporaryFolder folder;
  const auto path = folder / "out";
  EXPECT_EQ(in_child([&] {
              ::dup2(open_file(path, O_WRONLY | O_CREAT).number(), 1);
              LineLog log(1, "standard output");
              log.append("x");
              log.flush();
              return read_file(path);
            }),
            "x\n");
}

TEST(LineLog, SaysWhyItCannotBeOpened) {
  const TemporaryFolder folder;
  EXPECT_EQ(error_of([&] { LineLog log(folder / "missing/log"); }),
            (folder / "missing/log").string() + ": cannot create: No such file or directory");
  EXPECT_EQ(error_of([&] { LineLog log(folder.path()); }),
            folder.path().string() + ": cannot create: Is a directory");
}

TEST(StandardStreams, ClosedOnesDoNotLendTheirNumbersToFiles) {
  const TemporaryFolder folder;
  const auto path = folder / "file";
  EXPECT_EQ(in_child([&] {
              for (const int stream : {0, 1}) ::close(stream);
              guard_standard_streams();
              const Descriptor file = open_file(path, O_WRONLY | O_CREAT);
              check(file.number() > 2, "test", "the file got {}", file.number());
              LineLog(1, "standard output").append("x");
              return "no error";
            }),
            "error: standard output: cannot write: Bad file descriptor");
  EXPECT_EQ(read_file(path), "");
}

TEST(Lines, KeepsTheFirst) {
  const TemporaryFolder folder;
  std::ofstream(folder / "log") << "one\ntwo\nthree\nhalf";
  keep_lines(folder / "log", 3);
  EXPECT_EQ(read_file(folder / "log"), "one\ntwo\nthree\n");
  EXPECT_EQ(error_of([&] { keep_lines(folder / "log", 4); }),
            (folder / "log").string() + ": has 3 whole lines, 4 are wanted");
  keep_lines(folder / "log", 0);
  EXPECT_EQ(read_file(folder / "log"), "");
}

}  // namespace
}  // namespace headlab
