#include "framework/command/numbers.h"

#include <cmath>
#include <functional>

#include <fmt/core.h>
#include <gtest/gtest.h>

#include "framework/core/check.h"

namespace headlab {
namespace {

constexpr WholeRange steps{1, 1'000'000'000};
constexpr WholeRange heads{1, 1024};
constexpr RealRange share{0, 1};
constexpr RealRange rate{.min = 0, .max = 1, .above_min = true};

std::string error_of(const std::function<void()>& run) {
  try {
    run();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}
std::string whole_error(std::string_view text) {
  return error_of([&] { parse_whole("--steps", text, steps); });
}
std::string real_error(std::string_view text, RealRange range = rate) {
  return error_of([&] { parse_real("--lr", text, range); });
}
std::string list_error(std::string_view text) {
  return error_of([&] { parse_whole_list("--heads", text, heads); });
}

TEST(Numbers, ReadsWholeNumbers) {
  EXPECT_EQ(parse_whole("--steps", "1", steps), 1);
  EXPECT_EQ(parse_whole("--steps", "1000000000", steps), 1'000'000'000);
  EXPECT_EQ(parse_whole("--steps", "010", steps), 10);
  EXPECT_EQ(parse_whole("--x", "-7", {-7, 7}), -7);
  EXPECT_EQ(parse_whole("--x", "-0", {0, 7}), 0);
  EXPECT_EQ(parse_whole("--x", "9223372036854775807", {}), 9223372036854775807);
}

TEST(Numbers, RefusesWhatIsNotDecimalDigits) {
  for (const std::string text : {"1e9", "0x10", "4x",    "x",   "",    " 4",  "4 ",    "+4",    "--4", "-",
                                 "nan", "inf",  "1e400", "1,5", "2.5", "2.0", "1_000", "1'000", "0b1", "٤"})
    EXPECT_EQ(whole_error(text), "--steps: '" + text + "' is not a whole number (allowed: 1 … 1000000000)");
  EXPECT_EQ(whole_error(std::string_view("4\0", 2)),
            "--steps: '4\\x00' is not a whole number (allowed: 1 … 1000000000)");
  EXPECT_EQ(whole_error("4\n"), "--steps: '4\\x0a' is not a whole number (allowed: 1 … 1000000000)");
}

TEST(Numbers, RefusesWholeNumbersOutOfRange) {
  for (const std::string text : {"-1", "0", "1000000001", "99999999999999999999", "-99999999999999999999",
                                 "18446744073709551617", "4294967297000"})
    EXPECT_EQ(whole_error(text), "--steps: " + text + " is out of range (allowed: 1 … 1000000000)");
  EXPECT_EQ(error_of([] { parse_whole("--heads", "0", heads); }),
            "--heads: 0 is out of range (allowed: 1 … 1024)");
  EXPECT_EQ(error_of([] { parse_whole("--seed", "-1", {}); }),
            "--seed: -1 is out of range (allowed: 0 and more)");
}

TEST(Numbers, CutsALongValueInTheMessage) {
  const std::string nines(100'000, '9'), letters(59, 'a');
  EXPECT_EQ(whole_error(nines), fmt::format("--steps: {}… is out of range (allowed: 1 … 1000000000)",
                                            std::string_view(nines).substr(0, 60)));
  EXPECT_EQ(whole_error(letters + "éé"),
            fmt::format("--steps: '{}…' is not a whole number (allowed: 1 … 1000000000)", letters));
}

TEST(Numbers, ReadsRealNumbers) {
  EXPECT_EQ(parse_real("--lr", "1e-3", rate), 1e-3);
  EXPECT_EQ(parse_real("--lr", "1E-03", rate), 1e-3);
  EXPECT_EQ(parse_real("--lr", "0.1", rate), 0.1);
  EXPECT_EQ(parse_real("--lr", ".5", rate), 0.5);
  EXPECT_EQ(parse_real("--lr", "1.", rate), 1);
  EXPECT_EQ(parse_real("--lr", "010e-1", rate), 1);
  EXPECT_EQ(parse_real("--dropout", "0", share), 0);
  EXPECT_EQ(parse_real("--dropout", "0.0e5", share), 0);
  EXPECT_FALSE(std::signbit(parse_real("--dropout", "-0", share)));
  EXPECT_EQ(parse_real("--x", "-2.5", {-3, 3}), -2.5);
  EXPECT_EQ(parse_real("--x", "1e9", {}), 1e9);
}

TEST(Numbers, RefusesWhatIsNotADecimalReal) {
  for (const std::string text :
       {"0x10",     "0x1p3", "4x", "",    " 4", "4 ", "+4", "nan", "NaN",   "-nan",  "inf", "-inf",
        "infinity", "1,5",   "1e", "1e+", "e5", ".",  "-",  "-.",  "1.2.3", "1e2.5", "1e 5"})
    EXPECT_EQ(real_error(text), "--lr: '" + text + "' is not a number (allowed: above 0, at most 1)");
}

TEST(Numbers, RefusesRealNumbersOutOfRange) {
  for (const std::string text : {"-1", "0", "-0.0", "1.0000000000000002", "1e9", "1e400", "-1e400", "1e-400",
                                 "1e99999999999999999999", "1e-99999999999999999999"})
    EXPECT_EQ(real_error(text), "--lr: " + text + " is out of range (allowed: above 0, at most 1)");
  // Neither saturates nor vanishes where the range would allow the nearest value.
  EXPECT_EQ(real_error("1e400", {}), "--lr: 1e400 is out of range (allowed: 0 and more)");
  EXPECT_EQ(real_error("1e-400", share), "--lr: 1e-400 is out of range (allowed: 0 … 1)");
  EXPECT_EQ(real_error("0", {.min = 0, .above_min = true}), "--lr: 0 is out of range (allowed: above 0)");
}

TEST(Numbers, ReadsLists) {
  EXPECT_EQ(parse_whole_list("--heads", "1,2,4", heads), (std::vector<std::int64_t>{1, 2, 4}));
  EXPECT_EQ(parse_whole_list("--heads", "8", heads), (std::vector<std::int64_t>{8}));
  EXPECT_EQ(parse_real_list("--lr", "1e-2,0.003", rate), (std::vector<double>{1e-2, 3e-3}));
}

TEST(Numbers, RefusesListsNamingTheElement) {
  EXPECT_EQ(list_error("1,,2"), "--heads: element 2 of '1,,2' is empty");
  EXPECT_EQ(list_error(","), "--heads: element 1 of ',' is empty");
  EXPECT_EQ(list_error("1,2,"), "--heads: element 3 of '1,2,' is empty");
  EXPECT_EQ(list_error(""), "--heads: the list is empty");
  EXPECT_EQ(list_error("1, 2"),
            "--heads: element 2 of '1, 2': ' 2' is not a whole number (allowed: 1 … 1024)");
  EXPECT_EQ(list_error("1,1"), "--heads: element 2 of '1,1' repeats 1");
  EXPECT_EQ(list_error("4,8,04"), "--heads: element 3 of '4,8,04' repeats 4");
  EXPECT_EQ(list_error("0,1"), "--heads: element 1 of '0,1': 0 is out of range (allowed: 1 … 1024)");
  EXPECT_EQ(list_error("1;2"),
            "--heads: element 1 of '1;2': '1;2' is not a whole number (allowed: 1 … 1024)");
  EXPECT_EQ(error_of([] { parse_real_list("--lr", "0.1,1e-1", rate); }),
            "--lr: element 2 of '0.1,1e-1' repeats 0.1");
  EXPECT_EQ(error_of([] { parse_real_list("--lr", "0.1,nan", rate); }),
            "--lr: element 2 of '0.1,nan': 'nan' is not a number (allowed: above 0, at most 1)");
}

TEST(Numbers, ChecksThatHeadsDivideTheModel) {
  const std::vector<std::int64_t> counts{8, 3};
  EXPECT_EQ(error_of([&] { check_divisors("--heads", counts, "--d-model", 8); }),
            "--heads: 3 does not divide --d-model 8");
  EXPECT_EQ(error_of([&] { check_divisors("--heads", counts, "--d-model", 24); }), "no error");
}

}  // namespace
}  // namespace headlab
