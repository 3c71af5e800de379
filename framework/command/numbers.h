// Strict reading of numbers from the command line: the whole text is one decimal number in range, or an error
// that names the option, the value and what is allowed. Nothing is rounded, wrapped, or cut short. Pure
// functions; thread-safe.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <string_view>
#include <vector>

namespace headlab {

/// Whole numbers from min to max, both allowed.
struct WholeRange {
  std::int64_t min = 0;
  std::int64_t max = std::numeric_limits<std::int64_t>::max();
};

/// Real numbers from min to max; min itself may be excluded.
struct RealRange {
  double min = 0;
  double max = std::numeric_limits<double>::max();
  bool above_min = false;
};

/// A whole number: decimal digits with an optional '-', nothing else ("1e9", "0x10", " 4", "+4" and "" are
/// errors). Leading zeros mean nothing: "010" is 10. For example
///   --steps: 'x' is not a whole number (allowed: 1 … 1000000000)
///   --heads: 0 is out of range (allowed: 1 … 1024)
std::int64_t parse_whole(std::string_view option, std::string_view text, WholeRange range);

/// A real number: decimal ("0.5", ".5", "2") or scientific ("1e-3") with an optional '-'; no hexadecimal, no
/// "nan" or "inf". A number too large for f64, or too small to be told from 0, is an error.
double parse_real(std::string_view option, std::string_view text, RealRange range);

/// One or more numbers between commas. Errors name the element, counted from 1: an empty one (so "1,2," too),
/// blanks, one that is not such a number or is out of range, one that repeats an earlier value.
std::vector<std::int64_t> parse_whole_list(std::string_view option, std::string_view text, WholeRange range);
std::vector<double> parse_real_list(std::string_view option, std::string_view text, RealRange range);

/// Error, naming both options, unless every element divides `whole`:
///   --heads: 3 does not divide --d-model 8
void check_divisors(std::string_view option, std::span<const std::int64_t> divisors,
                    std::string_view whole_option, std::int64_t whole);

}  // namespace headlab
