// Damaged and hostile files: each is an error at once, and costs little memory.
#include <filesystem>

#include "framework/core/pool.h"
#include "framework/files/safetensors.h"
#include "tests/files/allocations.h"
#include "tests/files/raw_safetensors.h"
#include "tests/support/errors.h"
#include "tests/support/temporary_folder.h"

namespace headlab {
namespace {

class HostileSafetensors : public testing::Test {
 protected:
  // The error for the file as it is now, without the path.
  std::string refusal() const {
    const pool::Counters pool_before = pool::counters();
    const std::int64_t before = bytes_allocated();
    const std::string text = error_of([&] { read_safetensors(path_); });
    EXPECT_LT(bytes_allocated() - before, 200'000'000);
    EXPECT_EQ(pool::counters().allocations, pool_before.allocations) << "arrays were made: " << text;
    const std::string where = path_.string() + ": ";
    EXPECT_EQ(text.substr(0, where.size()), where);
    return text.substr(std::min(where.size(), text.size()));
  }
  std::string refusal_of(const std::string& header, const std::string& data = "") const {
    write_raw(path_, header, data);
    return refusal();
  }
  // A tensor x of one F32 with one part of its entry replaced.
  std::string refusal_with(const std::string& part, const std::string& by) const {
    std::string header = R"({"x":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})";
    const std::size_t at = header.find(part);
    EXPECT_NE(at, std::string::npos) << part;
    return refusal_of(header.replace(at, part.size(), by), "1234");
  }
  std::string with_shape(const std::string& shape) const { return refusal_with("[1]", shape); }
  std::string with_offsets(const std::string& offsets) const { return refusal_with("[0,4]", offsets); }

  TemporaryFolder folder_;
  std::filesystem::path path_ = folder_ / "hostile";
};

std::string repeated(const std::string& text, int times) {
  std::string result;
  for (int i = 0; i < times; ++i) result += text;
  return result;
}

TEST_F(HostileSafetensors, TooShortForALength) {
  const std::string bytes(8, '\0');
  for (const std::size_t size : {0, 7}) {
    std::ofstream(path_) << bytes.substr(0, size);
    EXPECT_EQ(refusal(), fmt::format("has {} bytes, too few for a safetensors file", size));
  }
  std::ofstream(path_) << bytes;
  EXPECT_EQ(refusal(), "header: does not begin with an opening brace");
}

TEST_F(HostileSafetensors, HeaderLongerThanTheFile) {
  const std::uint64_t size = 8 + 2 + 20;
  for (const std::uint64_t length : {UINT64_MAX, UINT64_C(1) << 63, size, size - 7, UINT64_C(101'000'000)}) {
    write_raw(path_, length, "{}", std::string(20, ' '));
    EXPECT_EQ(refusal(), fmt::format("header: its length is {}, the file has {} bytes", length, size));
  }
  write_raw(path_, size - 8, "{}", std::string(20, ' '));
  EXPECT_TRUE(read_safetensors(path_).arrays.empty());
}

TEST_F(HostileSafetensors, HeaderOverTheLimitInAFileThatHoldsIt) {
  write_raw(path_, 101'000'000, "{}");
  std::filesystem::resize_file(path_, 300'000'000);
  const std::int64_t before = bytes_allocated();
  EXPECT_EQ(refusal(), "header: its length is 101000000, at most 100000000 are allowed");
  EXPECT_LT(bytes_allocated() - before, 100'000);
}

TEST_F(HostileSafetensors, HeaderThatIsNoJsonObject) {
  EXPECT_EQ(refusal_of("hello"), "header: does not begin with an opening brace");
  EXPECT_EQ(refusal_of("[]"), "header: does not begin with an opening brace");
  EXPECT_EQ(refusal_of("7"), "header: does not begin with an opening brace");
  EXPECT_EQ(refusal_of(" {}"), "header: does not begin with an opening brace");
  EXPECT_EQ(refusal_of("{\"x\": nope}"), "header: not JSON at byte 8");
  EXPECT_EQ(refusal_of("{} {}"), "header: not JSON at byte 4");
  EXPECT_EQ(refusal_of("{\"\xff\":1}"), "header: not JSON at byte 3");
  EXPECT_EQ(refusal_of(std::string("{}\0garbage", 10)), "header: holds a zero byte");
}

TEST_F(HostileSafetensors, CutAnywhere) {
  const std::string header =
      R"({"__metadata__":{"a":"b"},"x":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})";
  for (std::size_t size = 1; size < header.size(); ++size) {
    EXPECT_EQ(refusal_of(header.substr(0, size)).substr(0, 7), "header:") << size;
  }
  EXPECT_EQ(refusal_of(header, "123"), "header: the tensors take 4 bytes, the file has 3");
}

TEST_F(HostileSafetensors, NestedDeeply) {
  const int levels = 100'000;
  EXPECT_EQ(refusal_of(repeated("[", levels)), "header: does not begin with an opening brace");
  EXPECT_EQ(refusal_of(repeated("{\"a\":", levels)),
            "header: tensor \"a\": \"a\" is not known, dtype, shape and "
            "data_offsets are");
  EXPECT_EQ(refusal_of("{\"a\":" + repeated("[", levels)),
            "header: a list as the value of \"a\", needs an object");
  EXPECT_EQ(with_shape(repeated("[", levels)), "header: tensor \"x\": a list inside shape");
  EXPECT_EQ(refusal_with("\"F32\"", repeated("{\"a\":", levels)),
            "header: tensor \"x\": an object inside dtype");
  EXPECT_EQ(refusal_of("{\"__metadata__\":{\"a\":" + repeated("[", levels)),
            "header: a list as the metadata of \"a\", needs a string");
}

TEST_F(HostileSafetensors, ImpossibleShapes) {
  const std::string x = "header: tensor \"x\": ";
  EXPECT_EQ(with_shape("[9223372036854775807,2]"),
            x + "shape: [9223372036854775807, 2] has more than 2^63 - 1 elements");
  EXPECT_EQ(with_shape("[4294967296,4294967296]"),
            x + "shape: [4294967296, 4294967296] has more than 2^63 - 1 elements");
  EXPECT_EQ(with_shape("[4,1073741823,1073741825]"),
            x + "[4, 1073741823, 1073741825] of F32 needs more than 2^63 bytes");
  EXPECT_EQ(with_shape("[4611686018427387904]"),
            x + "[4611686018427387904] of F32 needs more than 2^63 bytes");
  EXPECT_EQ(with_shape("[1000000000]"),
            x + "[1000000000] of F32 needs 4000000000 bytes, data_offsets are [0, 4]");
  EXPECT_EQ(with_shape("[-1]"), x + "shape holds -1, needs numbers from 0 on");
  EXPECT_EQ(with_shape("[1.5]"), x + "shape holds \"1.5\", needs whole numbers below 2^63");
  EXPECT_EQ(with_shape("[1e0]"), x + "shape holds \"1e0\", needs whole numbers below 2^63");
  EXPECT_EQ(with_shape("[9223372036854775808]"),
            x + "shape holds 9223372036854775808, needs whole numbers below 2^63");
  EXPECT_EQ(with_shape("[18446744073709551617]"),
            x + "shape holds \"18446744073709551617\", needs whole numbers below 2^63");
  EXPECT_EQ(with_shape("[1" + repeated(",1", 9'999) + "]"), x + "shape has more than 8 numbers");
  EXPECT_EQ(with_shape("[\"1\"]"), x + "a string inside shape");
  EXPECT_EQ(with_shape("[null]"), x + "null inside shape");
  EXPECT_EQ(with_shape("7"), x + "a number inside shape");
}

TEST_F(HostileSafetensors, OffsetsThatDoNotFit) {
  const std::string x = "header: tensor \"x\": ";
  EXPECT_EQ(with_offsets("[0,5]"), x + "[1] of F32 needs 4 bytes, data_offsets are [0, 5]");
  EXPECT_EQ(with_offsets("[4,0]"), x + "[1] of F32 needs 4 bytes, data_offsets are [4, 0]");
  EXPECT_EQ(with_offsets("[9223372036854775804,9223372036854775807]"),
            x + "[1] of F32 needs 4 bytes, data_offsets are [9223372036854775804, 9223372036854775807]");
  EXPECT_EQ(with_offsets("[4,8]"),
            "header: tensor \"x\" begins at byte 4 of the data, the one before it ends at 0");
  EXPECT_EQ(with_offsets("[0]"), x + "data_offsets has 1 numbers, needs 2");
  EXPECT_EQ(with_offsets("[0,4,8]"), x + "data_offsets has more than 2 numbers");
}

TEST_F(HostileSafetensors, GapsOverlapsAndRests) {
  const auto two = [](int from, int to) {
    return fmt::format(R"({{"a":{{"dtype":"U8","shape":[2],"data_offsets":[0,2]}},)"
                       R"("b":{{"dtype":"U8","shape":[2],"data_offsets":[{},{}]}}}})",
                       from, to);
  };
  EXPECT_EQ(refusal_of(two(1, 3), "123"),
            "header: tensor \"b\" begins at byte 1 of the data, the one before it ends at 2");
  EXPECT_EQ(refusal_of(two(3, 5), "12345"),
            "header: tensor \"b\" begins at byte 3 of the data, the one before it ends at 2");
  EXPECT_EQ(refusal_of(two(0, 2), "12"),
            "header: tensor \"b\" begins at byte 0 of the data, the one before it ends at 2");
  EXPECT_EQ(refusal_of(two(2, 4), "12345"), "header: the tensors take 4 bytes, the file has 5");
  EXPECT_EQ(refusal_of("{}", "1"), "header: the tensors take 0 bytes, the file has 1");
}

TEST_F(HostileSafetensors, EntriesThatAreNotWhatTheyShouldBe) {
  const std::string x = "header: tensor \"x\": ";
  EXPECT_EQ(refusal_with("F32", "F8_E4M3"), x + "type \"F8_E4M3\" is not known, F32, F64, I64 and U8 are");
  EXPECT_EQ(refusal_with("\"F32\"", "32"), x + "a number inside dtype");
  EXPECT_EQ(refusal_with("\"dtype\":\"F32\",", ""), x + "has no dtype");
  EXPECT_EQ(refusal_with("\"shape\":[1],", ""), x + "has no shape");
  EXPECT_EQ(refusal_with(",\"data_offsets\":[0,4]", ""), x + "has no data_offsets");
  EXPECT_EQ(refusal_with("\"shape\"", "\"shape\":[1],\"shape\""), x + "shape is there twice");
  EXPECT_EQ(refusal_with("\"shape\"", "\"stride\":[1],\"shape\""),
            x + "\"stride\" is not known, dtype, shape and data_offsets are");
  EXPECT_EQ(refusal_of(R"({"x":7})"), "header: a number as the value of \"x\", needs an object");
  EXPECT_EQ(refusal_of(R"({"x":null})"), "header: null as the value of \"x\", needs an object");
  const std::string empty = R"("x":{"dtype":"U8","shape":[0],"data_offsets":[0,0]})";
  EXPECT_EQ(refusal_of("{" + empty + "," + empty + "}"), "header: the name \"x\" is there twice");
  EXPECT_EQ(refusal_of(R"({"__metadata__":{"a":1}})"),
            "header: a number as the metadata of \"a\", needs a string");
  EXPECT_EQ(refusal_of(R"({"__metadata__":{"a":"","a":""}})"),
            "header: the metadata key \"a\" is there twice");
  EXPECT_EQ(refusal_of(R"({"__metadata__":{},"__metadata__":{}})"),
            "header: the name \"__metadata__\" is there twice");
}

TEST_F(HostileSafetensors, LongNamesAreCutInMessages) {
  EXPECT_EQ(refusal_of(fmt::format("{{\"{:n>1000000}\":7}}", "")),
            fmt::format("header: a number as the value of \"{:n>60}…\", needs an object", ""));
  EXPECT_EQ(refusal_of("{\"a\\u0007\":7}"), "header: a number as the value of \"a?\", needs an object");
}

TEST_F(HostileSafetensors, NotARegularFile) {
  EXPECT_EQ(error_of([] { read_safetensors("/dev/zero"); }), "/dev/zero: cannot read: not a regular file");
  EXPECT_EQ(error_of([&] { read_safetensors(folder_.path()); }),
            folder_.path().string() + ": cannot read: not a regular file");
  EXPECT_EQ(refusal(), "cannot open: No such file or directory");
}

TEST_F(HostileSafetensors, AFileCutAfterOpeningIsAnError) {
  write_safetensors(path_, {{"x", Array::zeros({1000})}});
  const SafetensorsReader reader(path_);
  std::filesystem::resize_file(path_, 2000);
  const std::string text = error_of([&] { reader.read("x"); });
  EXPECT_NE(text.find(": ends at byte 2000, "), std::string::npos) << text;
}

TEST_F(HostileSafetensors, AValidFileTakesItsSizeInMemory) {
  write_safetensors(path_, {{"x", Array::zeros({1'000'003})}, {"y", Array::zeros({500'009}, DType::f64)}});
  const std::int64_t live = pool::counters().live_bytes;
  const std::int64_t before = bytes_allocated();
  pool::reset_peak();
  const Safetensors content = read_safetensors(path_);
  const auto size = static_cast<std::int64_t>(std::filesystem::file_size(path_));
  EXPECT_LE(pool::counters().peak_bytes - live, size + 1000);
  EXPECT_LT(bytes_allocated() - before, 100'000);
}

}  // namespace
}  // namespace headlab
