#include "framework/command/numbers.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <string>
#include <system_error>

#include "framework/core/check.h"

namespace headlab {

namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

/// The value as it may be shown: control characters written out, a long one cut between two characters.
std::string shown(std::string_view text) {
  constexpr std::size_t longest = 60;
  const auto continues = [](char c) { return (static_cast<unsigned char>(c) & 0xc0) == 0x80; };
  std::size_t length = std::min(text.size(), longest);
  while (length < text.size() && length > 0 && continues(text[length])) --length;
  std::string result;
  for (const char c : text.substr(0, length)) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7f)
      result += fmt::format("\\x{:02x}", byte);
    else
      result += c;
  }
  return result + (length < text.size() ? "…" : "");
}

std::string text_of(WholeRange range) {
  if (range.max == std::numeric_limits<std::int64_t>::max()) return fmt::format("{} and more", range.min);
  return fmt::format("{} … {}", range.min, range.max);
}

std::string text_of(RealRange range) {
  const bool open_end = range.max == std::numeric_limits<double>::max();
  if (range.above_min)
    return open_end ? fmt::format("above {}", range.min)
                    : fmt::format("above {}, at most {}", range.min, range.max);
  return open_end ? fmt::format("{} and more", range.min) : fmt::format("{} … {}", range.min, range.max);
}

/// digits [. digits] [e [sign] digits], with a digit before or behind the point.
bool is_decimal_real(std::string_view text) {
  std::size_t at = 0;
  const auto digits = [&] {
    const std::size_t from = at;
    while (at < text.size() && is_digit(text[at])) ++at;
    return at - from;
  };
  if (at < text.size() && text[at] == '-') ++at;
  std::size_t mantissa = digits();
  if (at < text.size() && text[at] == '.') {
    ++at;
    mantissa += digits();
  }
  if (mantissa == 0) return false;
  if (at < text.size() && (text[at] == 'e' || text[at] == 'E')) {
    ++at;
    if (at < text.size() && (text[at] == '-' || text[at] == '+')) ++at;
    if (digits() == 0) return false;
  }
  return at == text.size();
}

/// `where` is the option, or the option and the element of its list.
std::int64_t whole(std::string_view where, std::string_view text, WholeRange range) {
  const std::string_view digits = text.substr(text.starts_with('-') ? 1 : 0);
  check(!digits.empty() && std::all_of(digits.begin(), digits.end(), is_digit), where,
        "'{}' is not a whole number (allowed: {})", shown(text), text_of(range));
  std::int64_t value = 0;
  const auto result = std::from_chars(text.data(), text.data() + text.size(), value);
  check(result.ec == std::errc() && value >= range.min && value <= range.max, where,
        "{} is out of range (allowed: {})", shown(text), text_of(range));
  return value;
}

double real(std::string_view where, std::string_view text, RealRange range) {
  check(is_decimal_real(text), where, "'{}' is not a number (allowed: {})", shown(text), text_of(range));
  double value = 0;
  const auto result = std::from_chars(text.data(), text.data() + text.size(), value);
  const std::string_view mantissa = text.substr(0, text.find_first_of("eE"));
  const bool is_zero = mantissa.find_first_of("123456789") == std::string_view::npos;
  const bool held = result.ec == std::errc() && std::isfinite(value) && (value != 0 || is_zero);
  check(held && (range.above_min ? value > range.min : value >= range.min) && value <= range.max, where,
        "{} is out of range (allowed: {})", shown(text), text_of(range));
  return is_zero ? 0.0 : value;  // "-0" is 0
}

template <class Number, class Parse>
std::vector<Number> list(std::string_view option, std::string_view text, const Parse& parse) {
  check(!text.empty(), option, "the list is empty");
  std::vector<Number> values;
  for (std::size_t from = 0; from <= text.size();) {
    const std::size_t to = std::min(text.find(',', from), text.size());
    const std::string_view element = text.substr(from, to - from);
    const std::string position = fmt::format("element {} of '{}'", values.size() + 1, shown(text));
    check(!element.empty(), option, "{} is empty", position);
    const Number value = parse(fmt::format("{}: {}", option, position), element);
    check(std::find(values.begin(), values.end(), value) == values.end(), option, "{} repeats {}", position,
          value);
    values.push_back(value);
    from = to + 1;
  }
  return values;
}

}  // namespace

std::int64_t parse_whole(std::string_view option, std::string_view text, WholeRange range) {
  return whole(option, text, range);
}

double parse_real(std::string_view option, std::string_view text, RealRange range) {
  return real(option, text, range);
}

std::vector<std::int64_t> parse_whole_list(std::string_view option, std::string_view text, WholeRange range) {
  return list<std::int64_t>(option, text, [&](std::string_view where, std::string_view element) {
    return whole(where, element, range);
  });
}

std::vector<double> parse_real_list(std::string_view option, std::string_view text, RealRange range) {
  return list<double>(option, text, [&](std::string_view where, std::string_view element) {
    return real(where, element, range);
  });
}

void check_divisors(std::string_view option, std::span<const std::int64_t> divisors,
                    std::string_view whole_option, std::int64_t whole_value) {
  for (const std::int64_t divisor : divisors)
    check(divisor != 0 && whole_value % divisor == 0, option, "{} does not divide {} {}", divisor,
          whole_option, whole_value);
}

}  // namespace headlab
