#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "framework/core/check.h"
#include "framework/report/chart.h"
#include "framework/report/format.h"
#include "framework/report/html.h"
#include "framework/report/terminal.h"

namespace headlab {

namespace {

constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();

using Colour = std::array<double, 3>;
Colour between(const Colour& a, const Colour& b, double share) {
  return {a[0] + (b[0] - a[0]) * share, a[1] + (b[1] - a[1]) * share, a[2] + (b[2] - a[2]) * share};
}

// Light to dark, so that it reads in grey too; blue below and orange above 0 for the colour-blind.
Colour colour_of(double share, bool diverging) {
  constexpr Colour pale{247, 249, 252}, sky{116, 173, 209}, navy{8, 48, 107};
  constexpr Colour sand{253, 190, 112}, rust{150, 60, 4};
  if (!diverging) return share < 0.5 ? between(pale, sky, share * 2) : between(sky, navy, share * 2 - 1);
  const double away = std::abs(share - 0.5) * 2;
  const Colour& middle = share < 0.5 ? sky : sand;
  const Colour& end = share < 0.5 ? navy : rust;
  return away < 0.5 ? between(pale, middle, away * 2) : between(middle, end, away * 2 - 1);
}

}  // namespace

std::string matrix_svg(const MatrixPicture& m) {
  const std::size_t rows = m.rows.size(), columns = m.columns.size();
  check(m.values.size() == rows * columns, "matrix", "{} values for {} rows and {} columns", m.values.size(),
        rows, columns);
  check(m.half_widths.empty() || m.half_widths.size() == m.values.size(), "matrix",
        "{} intervals for {} values", m.half_widths.size(), m.values.size());
  check(m.low < m.high, "matrix", "the scale goes from {} to {}", m.low, m.high);
  const auto longest = [](const std::vector<std::string>& labels) {
    std::size_t most = 0;
    for (const std::string& label : labels) most = std::max(most, label.size());
    return static_cast<double>(most);
  };
  const bool numbers = columns <= 16;
  const bool turned = longest(m.columns) > 6;
  const bool intervals = numbers && !m.half_widths.empty();
  const double cell = numbers ? 46 : std::max(10.0, 700.0 / static_cast<double>(columns));
  const double row_height = intervals ? 34 : 24;
  const double x0 = 12 + 7.4 * std::min(longest(m.rows), 28.0);
  const double y0 = 30 + (turned ? 6.4 * std::min(longest(m.columns), 18.0) : 18);
  // Wide enough for its title, and for the last of the turned labels, which lean out.
  const double lean = turned ? 4.4 * std::min(longest(m.columns), 18.0) : 0;
  const double w = std::max(x0 + cell * static_cast<double>(columns) + 12 + lean,
                            24 + 8.4 * static_cast<double>(display_width(m.title)));
  const double h = y0 + row_height * static_cast<double>(rows) + 12;
  std::string out = svg_opening("matrix", w, h, m.title);
  out += fmt::format(R"(<text class="title" x="12" y="16">{}</text>)", escaped(m.title));
  for (std::size_t j = 0; j < columns; ++j) {
    const double x = x0 + cell * (static_cast<double>(j) + 0.5);
    const std::string place =
        turned ? fmt::format(R"x(class="tick" transform="translate({:.1f} {:.1f}) rotate(-50)")x", x, y0 - 6)
               : fmt::format(R"(class="tick m" x="{:.1f}" y="{:.1f}")", x, y0 - 6);
    out += fmt::format("<text {}>{}</text>", place, escaped(m.columns[j]));
  }
  for (std::size_t i = 0; i < rows; ++i) {
    const double y = y0 + row_height * static_cast<double>(i);
    out += fmt::format(R"(<text class="tick e" x="{:.1f}" y="{:.1f}">{}</text>)", x0 - 6,
                       y + row_height / 2 + 4, escaped(m.rows[i]));
    for (std::size_t j = 0; j < columns; ++j) {
      const double value = m.values[i * columns + j];
      if (!std::isfinite(value)) continue;
      const double x = x0 + cell * static_cast<double>(j);
      const double share = std::clamp((value - m.low) / (m.high - m.low), 0.0, 1.0);
      const Colour c = colour_of(share, m.diverging);
      const double half = m.half_widths.empty() ? not_a_number : m.half_widths[i * columns + j];
      const bool dark = 0.3 * c[0] + 0.59 * c[1] + 0.11 * c[2] < 130;
      out += fmt::format(R"(<rect x="{:.1f}" y="{:.1f}" width="{:.1f}" height="{:.1f}" )"
                         R"x(fill="rgb({:.0f},{:.0f},{:.0f})"><title>{} · {}: {}{}</title></rect>)x",
                         x, y, cell - 1, row_height - 1, c[0], c[1], c[2], escaped(m.rows[i]),
                         escaped(m.columns[j]), fixed(value, m.decimals + 1),
                         std::isfinite(half) ? " ± " + fixed(half, m.decimals + 1) : "");
      if (numbers) {
        out += fmt::format(R"(<text class="cell m {}" x="{:.1f}" y="{:.1f}">{}</text>)",
                           dark ? "onDark" : "onPale", x + cell / 2, y + (intervals ? 14 : 16),
                           fixed(value, m.decimals));
      }
      if (intervals && std::isfinite(half)) {
        out += fmt::format(R"(<text class="cell half m {}" x="{:.1f}" y="{:.1f}">±{}</text>)",
                           dark ? "onDark" : "onPale", x + cell / 2, y + 27, fixed(half, m.decimals));
      }
    }
  }
  return out + "</svg>";
}

}  // namespace headlab
