// Numbers as people read them. Pure functions; the same text in every locale.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace headlab {

/// 36352 → "36 352", -1234567 → "-1 234 567".
std::string grouped(std::int64_t value);

/// Three significant digits and a decimal prefix: (67.2e9, "FLOP") → "67.2 GFLOP", (0, "B") → "0 B",
/// (1.6e19, "B") → "16 EB". Numbers under 1 have no prefix; beyond 1000 E they are written as 1.6e25.
std::string with_unit(double value, std::string_view unit);

/// "250 ns", "12.3 ms", "4.25 s", "1 min 05 s", "2 h 03 min", "3 d 04 h".
std::string duration(double seconds);

/// A fixed number of decimals, never "-0.000"; from 1e15 on three digits and an exponent.
std::string fixed(double value, int decimals = 3);

/// As fixed() with a sign: "+0.610", "-0.012", "0.000".
std::string with_sign(double value, int decimals = 3);

/// 0.934 → "93.4 %".
std::string percent(double share, int decimals = 1);

/// "1.000 ± 0.000"; "1.000" without an interval; "–" without a mean. `sign` as in with_sign().
std::string estimate(std::optional<double> mean, std::optional<double> half_width, int decimals = 3,
                     bool sign = false);

}  // namespace headlab
