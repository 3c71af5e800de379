#include "framework/report/format.h"

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/core.h>

namespace headlab {

namespace {

std::string three_digits(double value) { return fmt::format("{:.3g}", value); }

}  // namespace

std::string grouped(std::int64_t value) {
  std::string text = fmt::format("{}", value);
  const std::ptrdiff_t first = value < 0 ? 1 : 0;
  for (std::ptrdiff_t at = std::ssize(text) - 3; at > first; at -= 3)
    text.insert(static_cast<std::size_t>(at), 1, ' ');
  return text;
}

std::string with_unit(double value, std::string_view unit) {
  static constexpr std::array<std::string_view, 7> prefixes{"", "k", "M", "G", "T", "P", "E"};
  if (!std::isfinite(value)) return fmt::format("{} {}", value, unit);
  std::size_t prefix = 0;
  double scaled = value;
  // 999.5 would round to 1000.
  for (; std::abs(scaled) >= 999.5 && prefix + 1 < prefixes.size(); ++prefix) scaled /= 1000;
  if (std::abs(scaled) >= 999.5) return fmt::format("{} {}", three_digits(value), unit);
  return fmt::format("{} {}{}", three_digits(scaled), prefixes[prefix], unit);
}

std::string duration(double seconds) {
  if (!std::isfinite(seconds)) return fmt::format("{} s", seconds);
  if (seconds < 0) return fmt::format("-{}", duration(-seconds));
  if (seconds == 0) return "0 s";
  if (seconds < 999.5e-9) return three_digits(seconds * 1e9) + " ns";
  if (seconds < 999.5e-6) return three_digits(seconds * 1e6) + " µs";
  if (seconds < 999.5e-3) return three_digits(seconds * 1e3) + " ms";
  if (seconds < 59.95) return three_digits(seconds) + " s";
  if (seconds > 1e15) return fmt::format("{} s", three_digits(seconds));
  const auto whole = static_cast<std::int64_t>(std::llround(seconds));
  if (whole < 3600) return fmt::format("{} min {:02} s", whole / 60, whole % 60);
  const std::int64_t minutes = (whole + 30) / 60;
  if (minutes < 24 * 60) return fmt::format("{} h {:02} min", minutes / 60, minutes % 60);
  const std::int64_t hours = (whole + 1800) / 3600;
  return fmt::format("{} d {:02} h", hours / 24, hours % 24);
}

std::string fixed(double value, int decimals) {
  if (!std::isfinite(value)) return fmt::format("{}", value);
  if (std::abs(value) >= 1e15) return fmt::format("{:.2e}", value);
  std::string text = fmt::format("{:.{}f}", value, std::max(decimals, 0));
  if (text.starts_with('-') && text.find_first_of("123456789") == std::string::npos) return text.substr(1);
  return text;
}

std::string with_sign(double value, int decimals) {
  const std::string text = fixed(value, decimals);
  const bool positive = value > 0 && text.find_first_of("123456789i") != std::string::npos;
  return positive ? fmt::format("+{}", text) : text;
}

std::string percent(double share, int decimals) { return fixed(100 * share, decimals) + " %"; }

std::string estimate(std::optional<double> mean, std::optional<double> half_width, int decimals, bool sign) {
  if (!mean) return "–";
  const std::string text = sign ? with_sign(*mean, decimals) : fixed(*mean, decimals);
  return half_width ? fmt::format("{} ± {}", text, fixed(*half_width, decimals)) : text;
}

}  // namespace headlab
