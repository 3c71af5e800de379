#include "framework/files/safetensors.h"

#include <cstdio>
#include <cstring>
#include <limits>

#include <nlohmann/json.hpp>

#include "framework/core/pool.h"
#include "framework/files/atomic_file.h"
#include "tests/files/raw_safetensors.h"
#include "tests/support/errors.h"
#include "tests/support/goldens.h"
#include "tests/support/temporary_folder.h"

namespace headlab {
namespace {

double exactly(float value) { return static_cast<double>(value); }

std::uint64_t header_length(const std::string& file) {
  std::uint64_t length = 0;
  std::memcpy(&length, file.data(), sizeof length);
  return length;
}

void expect_round_trip(const NamedArrays& arrays, const Metadata& metadata) {
  const TemporaryFolder folder;
  const auto path = folder / "a.safetensors";
  write_safetensors(path, arrays, metadata);
  EXPECT_EQ((8 + header_length(read_file(path))) % 8, 0U);
  const Safetensors got = read_safetensors(path);
  EXPECT_EQ(got.metadata, metadata);
  ASSERT_EQ(got.arrays.size(), arrays.size());
  for (const auto& [name, array] : arrays) {
    ASSERT_EQ(got.arrays.count(name), 1U) << name;
    EXPECT_TRUE(same_bits(got.arrays.at(name), array)) << name;
  }
}

const std::string odd_name = "a \"quoted\" \\ name/é漢🙂\n\t\x01";

TEST(Safetensors, EveryTypeGoesRoundBitForBit) {
  using Limits = std::numeric_limits<float>;
  expect_round_trip({{"f32", Array::of<float>({2, 3}, {0, -0.0F, Limits::denorm_min(), Limits::infinity(),
                                                       Limits::quiet_NaN(), 1.1F})},
                     {"f64", Array::of<double>({3}, {-0.0, 5e-324, 0.1})},
                     {"i64", Array::of<std::int64_t>({2}, {INT64_MIN, INT64_MAX})},
                     {"u8", Array::of<std::uint8_t>({5}, {0, 1, 127, 128, 255})}},
                    {{"format", "pt"}});
}

TEST(Safetensors, OddContentGoesRound) {
  expect_round_trip({}, {});
  expect_round_trip({}, {{"only", "metadata"}});
  expect_round_trip({{"none", Array({0, 3})}, {"one", Array::full({}, 7)}, {"last", Array({0}, DType::u8)}},
                    {});
  expect_round_trip({{odd_name, Array::full({3}, 1)}, {"", Array::full({2}, 2)}},
                    {{odd_name, odd_name}, {"", ""}});
  NamedArrays thousand;
  for (int i = 0; i < 1000; ++i) {
    thousand[fmt::format("t{}", i)] = Array::full({i % 7}, i % 251, i % 2 ? DType::u8 : DType::f64);
  }
  expect_round_trip(thousand, {});
}

TEST(Safetensors, WritesARangeOfASharedBuffer) {
  const Array whole = Array::of<float>({3, 2}, {1, 2, 3, 4, 5, 6});
  expect_round_trip({{"middle", whole.range(1, 2)}}, {});
}

TEST(Safetensors, WritesTheDocumentedBytes) {
  const TemporaryFolder folder;
  write_safetensors(folder / "a",
                    {{"a", Array::of<std::uint8_t>({3}, {1, 2, 3})}, {"b", Array::of<float>({1, 1}, {1})}},
                    {{"k", "v"}});
  const std::string file = read_file(folder / "a");
  EXPECT_EQ(file.substr(8, header_length(file)),
            R"({"__metadata__":{"k":"v"},"b":{"dtype":"F32","shape":[1,1],"data_offsets":[0,4]},)"
            R"("a":{"dtype":"U8","shape":[3],"data_offsets":[4,7]}}   )");
  EXPECT_TRUE(file.ends_with(std::string("   \0\0\x80\x3f\x01\x02\x03", 10)));
}

TEST(Safetensors, ArraysAreAlignedInTheFile) {
  const TemporaryFolder folder;
  write_safetensors(folder / "a", {{"a", Array::full({3}, 1, DType::u8)},
                                   {"b", Array::full({3}, 1)},
                                   {"c", Array::full({3}, 1, DType::f64)}});
  const SafetensorsReader reader(folder / "a");
  for (const auto& [name, entry] : reader.entries())
    EXPECT_EQ(entry.begin % bytes_of(entry.dtype), 0) << name;
}

TEST(Safetensors, EqualContentGivesEqualBytes) {
  const TemporaryFolder folder;
  NamedArrays forward;
  NamedArrays backward;
  for (int i = 0; i < 50; ++i) forward[std::to_string(i)] = Array::full({i}, i);
  for (int i = 49; i >= 0; --i) backward[std::to_string(i)] = Array::full({i}, i);
  write_safetensors(folder / "a", forward, {{"x", "1"}, {"y", "2"}});
  write_safetensors(folder / "b", backward, {{"y", "2"}, {"x", "1"}});
  EXPECT_EQ(read_file(folder / "a"), read_file(folder / "b"));
}

TEST(Safetensors, OddButValidFilesOfOthersLoad) {
  const TemporaryFolder folder;
  const auto path = folder / "a";
  const auto load = [&](const std::string& header, const std::string& data = "") {
    write_raw(path, header, data);
    return read_safetensors(path);
  };
  EXPECT_TRUE(load("{}").arrays.empty());
  EXPECT_TRUE(load(R"({"__metadata__":{}})").metadata.empty());
  EXPECT_EQ(load(R"({"__metadata__":{"a":"b"}}       )").metadata.at("a"), "b");
  EXPECT_EQ(load(R"({ "x" : { "shape" : [ ] , "data_offsets":[0,1] , "dtype":"U8" } })", "\x05")
                .arrays.at("x")
                .item(),
            5);
  const auto empty = load(R"({"x":{"dtype":"F64","shape":[0,3],"data_offsets":[0,0]},)"
                          R"("__metadata__":{"after":"tensors"}})");
  EXPECT_EQ(empty.arrays.at("x").shape(), (Shape{0, 3}));
  EXPECT_EQ(empty.metadata.at("after"), "tensors");
  EXPECT_EQ(load(R"({"\u00e9\ud83d\ude42":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}})", "x")
                .arrays.count("é🙂"),
            1U);
  // In any order in the header, not aligned, an empty one between others.
  const auto mixed = load(R"({"z":{"dtype":"U8","shape":[1],"data_offsets":[5,6]},)"
                          R"("e":{"dtype":"F32","shape":[0],"data_offsets":[1,1]},)"
                          R"("a":{"dtype":"F32","shape":[1],"data_offsets":[1,5]},)"
                          R"("m":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}})",
                          std::string("\x01\0\0\x80\x3f\x02", 6));
  EXPECT_EQ(mixed.arrays.at("a").item(), 1);
  EXPECT_EQ(mixed.arrays.at("z").item(), 2);
}

TEST(Safetensors, ReaderGivesHeaderAndSingleArrays) {
  const TemporaryFolder folder;
  write_safetensors(folder / "a", {{"big", Array::zeros({1'000'003})}, {"small", Array::full({3}, 2)}},
                    {{"step", "7"}});
  const pool::Counters before = pool::counters();
  pool::reset_peak();
  const SafetensorsReader reader(folder / "a");
  EXPECT_EQ(reader.metadata().at("step"), "7");
  EXPECT_TRUE(reader.has("big"));
  EXPECT_FALSE(reader.has("none"));
  EXPECT_EQ(reader.entries().at("big").shape, (Shape{1'000'003}));
  EXPECT_TRUE(same_bits(reader.read("small"), Array::full({3}, 2)));
  EXPECT_LT(pool::counters().peak_bytes - before.live_bytes, 1000);
  EXPECT_EQ(error_of([&] { reader.read("none"); }), (folder / "a").string() + ": has no tensor none");
}

TEST(Safetensors, RefusesToWriteWhatNobodyCouldRead) {
  const TemporaryFolder folder;
  const auto path = folder / "a";
  write_safetensors(path, {}, {{"old", "file"}});
  const auto refusal = [&](const NamedArrays& arrays, const Metadata& metadata) {
    return error_of([&] { write_safetensors(path, arrays, metadata); });
  };
  const std::string where = path.string() + ": cannot write: ";
  EXPECT_EQ(refusal({{"x", Array()}}, {}), where + "the array x is absent");
  EXPECT_EQ(refusal({{"__metadata__", Array({1})}}, {}), where + "the name __metadata__ is the format's own");
  EXPECT_EQ(refusal({{"a\xff", Array({1})}}, {}), path.string() + ": cannot write \"a\xff\": not UTF-8");
  EXPECT_EQ(refusal({}, {{"a", "\xc3"}}), path.string() + ": cannot write \"\xc3\": not UTF-8");
  EXPECT_EQ(read_safetensors(path).metadata.at("old"), "file");
}

TEST(Safetensors, APlainPythonReaderAgrees) {
  if (std::system("python3 -c '' 2>/dev/null") != 0) GTEST_SKIP() << "python3 is not installed";
  const TemporaryFolder folder;
  const auto path = folder / "a.safetensors";
  const Metadata metadata{{odd_name, "v"}, {"empty", ""}};
  write_safetensors(path,
                    {{odd_name, Array::of<float>({2, 3}, {0.1F, -2, 3e38F, 1e-45F, 5, 6})},
                     {"d", Array::of<double>({}, {0.1})},
                     {"i", Array::of<std::int64_t>({2}, {INT64_MIN, 3})},
                     {"n", Array({0, 3})},
                     {"u", Array::of<std::uint8_t>({3}, {0, 128, 255})}},
                    metadata);
  const std::string command =
      fmt::format("python3 {}/tests/files/read_safetensors.py {}", HEADLAB_SOURCE, path.string());
  std::FILE* pipe = ::popen(command.c_str(), "r");
  ASSERT_NE(pipe, nullptr);
  std::string text;
  for (int c = 0; (c = std::fgetc(pipe)) != EOF;) text += static_cast<char>(c);
  ASSERT_EQ(::pclose(pipe), 0);
  const nlohmann::json got = nlohmann::json::parse(text);
  EXPECT_EQ(got.at("length").get<std::uint64_t>() % 8, 0U);
  EXPECT_EQ(got.at("metadata").get<Metadata>(), metadata);
  const nlohmann::json want = {
      {odd_name, {"F32", {2, 3}, {exactly(0.1F), -2.0, exactly(3e38F), exactly(1e-45F), 5.0, 6.0}}},
      {"d", {"F64", nlohmann::json::array(), {0.1}}},
      {"i", {"I64", {2}, {INT64_MIN, 3}}},
      {"n", {"F32", {0, 3}, nlohmann::json::array()}},
      {"u", {"U8", {3}, {0, 128, 255}}}};
  EXPECT_EQ(got.at("tensors"), want);
}

}  // namespace
}  // namespace headlab
