#include "framework/report/chart.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "framework/core/check.h"
#include "framework/report/format.h"
#include "framework/report/html.h"
#include "framework/report/page_assets.h"
#include "framework/report/terminal.h"

namespace headlab {

namespace {

constexpr double width = 640, plot = 252;
constexpr double left = 72, right = 16, below = 48, legend_row = 22;
constexpr std::size_t colours = 8;
constexpr double infinite = std::numeric_limits<double>::infinity();

// 1, 2 or 5 times a power of ten.
double nice_step(double span, int pieces) {
  const double raw = span / pieces, power = std::pow(10.0, std::floor(std::log10(raw)));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (factor * power >= raw * 0.999) return factor * power;
  }
  return 10 * power;
}

// 1, 2 and 5 times the powers of ten; over more than three decades the powers alone.
std::vector<double> log_ticks(double low, double high) {
  std::vector<double> ticks;
  const bool few = std::log10(high / low) <= 3.2;
  for (double power = std::pow(10.0, std::floor(std::log10(low))); power <= high; power *= 10) {
    for (const double factor : {1.0, 2.0, 5.0}) {
      const double x = factor * power;
      if ((few || factor == 1.0) && x >= low && x <= high) ticks.push_back(x);
    }
  }
  return ticks;
}

std::string tick_text(double value, double step) {
  if (std::abs(value) >= 10000 && value == std::round(value)) return grouped(std::llround(value));
  const int decimals = std::clamp(static_cast<int>(std::ceil(-std::log10(step) - 1e-9)), 0, 6);
  return fixed(value, decimals);
}

// Where each entry of the legend begins. There is room for the larger letters of a narrow window.
struct Place {
  double x = 0, y = 0;
};
std::vector<Place> legend_places(const Chart& chart) {
  std::vector<Place> places;
  Place at{left, 30};
  for (const ChartSeries& series : chart.series) {
    const double wide = series.name.empty() ? 0 : 38 + 9.6 * static_cast<double>(display_width(series.name));
    if (at.x > left && at.x + wide > width - right) at = {left, at.y + legend_row};
    places.push_back(at);
    at.x += wide;
  }
  return places;
}

// Maps the data's range to the picture, below `top`.
class Frame {
 public:
  Frame(const Chart& chart, double top) : log_(chart.log_x), top_(top), bottom_(top + plot) {
    x_low_ = y_low_ = infinite;
    x_high_ = y_high_ = -infinite;
    for (const ChartSeries& series : chart.series) {
      check(series.low.size() == series.high.size() &&
                (series.low.empty() || series.low.size() == series.line.size()),
            "chart", "a band has {} and {} ends for {} points", series.low.size(), series.high.size(),
            series.line.size());
      for (const ChartPoint& p : series.line) take(p);
      for (const ChartPoint& p : series.points) take(p);
      for (std::size_t i = 0; i < series.low.size(); ++i) {
        take({series.line[i].x, series.low[i]});
        take({series.line[i].x, series.high[i]});
      }
    }
    for (const ChartMark& mark : chart.marks) take_x(mark.x);
    if (chart.y_low) y_low_ = *chart.y_low;
    if (chart.y_high) y_high_ = *chart.y_high;
    if (!(x_low_ <= x_high_)) x_low_ = log_ ? 1 : 0, x_high_ = x_low_ + 1;
    if (!(y_low_ <= y_high_)) y_low_ = 0, y_high_ = 1;
    if (x_low_ == x_high_)
      x_low_ = log_ ? x_low_ / 2 : x_low_ - 1, x_high_ = log_ ? x_high_ * 2 : x_high_ + 1;
    if (y_low_ == y_high_) y_low_ -= 0.5, y_high_ += 0.5;
    const double span = y_high_ - y_low_;
    if (!chart.y_low) y_low_ -= 0.04 * span;
    if (!chart.y_high) y_high_ += 0.04 * span;
    // Room for points at either end.
    if (log_) {
      const double more = std::pow(x_high_ / x_low_, 0.04);
      x_low_ /= more;
      x_high_ *= more;
    } else {
      const double more = 0.02 * (x_high_ - x_low_);
      x_low_ -= more;
      x_high_ += more;
    }
  }
  double x(double value) const {
    const double share =
        log_ ? std::log(value / x_low_) / std::log(x_high_ / x_low_) : (value - x_low_) / (x_high_ - x_low_);
    return left + share * (width - left - right);
  }
  double y(double value) const {
    const double inside = std::clamp(value, y_low_, y_high_);
    return bottom_ - (inside - y_low_) / (y_high_ - y_low_) * plot;
  }
  double top() const { return top_; }
  double bottom() const { return bottom_; }
  double x_low() const { return x_low_; }
  double x_high() const { return x_high_; }
  double y_low() const { return y_low_; }
  double y_high() const { return y_high_; }

 private:
  void take_x(double x) {
    if (!std::isfinite(x)) return;
    check(!log_ || x > 0, "chart", "x is {} on a logarithmic axis", x);
    x_low_ = std::min(x_low_, x);
    x_high_ = std::max(x_high_, x);
  }
  void take(const ChartPoint& p) {
    if (!std::isfinite(p.x) || !std::isfinite(p.y)) return;
    take_x(p.x);
    y_low_ = std::min(y_low_, p.y);
    y_high_ = std::max(y_high_, p.y);
  }
  bool log_;
  double top_, bottom_;
  double x_low_, x_high_, y_low_, y_high_;
};

std::string axes(const Chart& chart, const Frame& frame) {
  std::string out;
  const double y_step = nice_step(frame.y_high() - frame.y_low(), 5);
  for (double y = std::ceil(frame.y_low() / y_step - 1e-9) * y_step; y <= frame.y_high() + 1e-9 * y_step;
       y += y_step) {
    out += fmt::format(R"(<line class="grid" x1="{}" x2="{}" y1="{:.1f}" y2="{:.1f}"/>)", left, width - right,
                       frame.y(y), frame.y(y));
    out += fmt::format(R"(<text class="tick e" x="{}" y="{:.1f}">{}</text>)", left - 6, frame.y(y) + 4,
                       tick_text(y, y_step));
  }
  std::vector<double> ticks = chart.x_ticks;
  double x_step = 1;
  if (ticks.empty() && chart.log_x) {
    ticks = log_ticks(frame.x_low(), frame.x_high());
    if (!ticks.empty()) x_step = std::min(1.0, ticks.front());
  }
  if (ticks.size() < 2) {
    ticks.clear();
    x_step = nice_step(frame.x_high() - frame.x_low(), 7);
    for (double x = std::ceil(frame.x_low() / x_step) * x_step; x <= frame.x_high(); x += x_step) {
      ticks.push_back(x);
    }
  }
  for (const double x : ticks) {
    out += fmt::format(R"(<text class="tick m" x="{:.1f}" y="{}">{}</text>)", frame.x(x), frame.bottom() + 18,
                       tick_text(x, x_step));
  }
  out += fmt::format(R"(<line class="axis" x1="{0}" x2="{1}" y1="{2}" y2="{2}"/>)", left, width - right,
                     frame.bottom());
  out += fmt::format(R"(<text class="label m" x="{}" y="{}">{}</text>)", (left + width - right) / 2,
                     frame.bottom() + below - 10, escaped(chart.x_label));
  out += fmt::format(R"x(<text class="label m" transform="translate(16 {}) rotate(-90)">{}</text>)x",
                     (frame.top() + frame.bottom()) / 2, escaped(chart.y_label));
  return out;
}

std::string series_svg(const ChartSeries& series, const Frame& frame, std::size_t colour) {
  std::string out = fmt::format(R"(<g class="s{}">)", colour % colours);
  if (!series.low.empty()) {
    std::string path;
    for (std::size_t i = 0; i < series.line.size(); ++i) {
      if (!std::isfinite(series.high[i])) continue;
      path += fmt::format("{:.1f},{:.1f} ", frame.x(series.line[i].x), frame.y(series.high[i]));
    }
    for (std::size_t i = series.line.size(); i-- > 0;) {
      if (!std::isfinite(series.low[i])) continue;
      path += fmt::format("{:.1f},{:.1f} ", frame.x(series.line[i].x), frame.y(series.low[i]));
    }
    if (!path.empty()) out += fmt::format(R"(<polygon class="band" points="{}"/>)", path);
  }
  std::string path;
  bool down = false;
  for (const ChartPoint& p : series.line) {
    if (!std::isfinite(p.y)) {
      down = false;
      continue;
    }
    path += fmt::format("{}{:.1f} {:.1f}", down ? "L" : "M", frame.x(p.x), frame.y(p.y));
    down = true;
  }
  if (!path.empty()) {
    out += fmt::format(R"(<path class="line{}" d="{}"/>)", series.dashed ? " dash" : "", path);
  }
  if (series.line.size() <= 20 && !series.dashed) {
    for (const ChartPoint& p : series.line) {
      if (!std::isfinite(p.y)) continue;
      out +=
          fmt::format(R"(<circle class="dot" cx="{:.1f}" cy="{:.1f}" r="4"/>)", frame.x(p.x), frame.y(p.y));
    }
  }
  for (const ChartPoint& p : series.points) {
    if (!std::isfinite(p.y)) continue;
    out += fmt::format(R"(<circle class="ring" cx="{:.1f}" cy="{:.1f}" r="3.5"><title>{}</title></circle>)",
                       frame.x(p.x), frame.y(p.y), fixed(p.y));
  }
  return out + "</g>";
}

std::string legend(const Chart& chart, const std::vector<Place>& places) {
  std::string out;
  for (std::size_t i = 0; i < chart.series.size(); ++i) {
    const ChartSeries& series = chart.series[i];
    if (series.name.empty()) continue;
    const Place& at = places[i];
    out += fmt::format(R"(<g class="s{0}"><line class="line{1}" x1="{2}" x2="{3}" y1="{4}" y2="{4}"/></g>)",
                       i % colours, series.dashed ? " dash" : "", at.x, at.x + 18, at.y);
    out += fmt::format(R"(<text class="key" x="{}" y="{}">{}</text>)", at.x + 23, at.y + 4,
                       escaped(series.name));
  }
  return out;
}

}  // namespace

std::string chart_svg(const Chart& chart) {
  const std::vector<Place> places = legend_places(chart);
  const Frame frame(chart, (places.empty() ? 30 : places.back().y) + 12);
  std::string out = svg_opening("chart", width, frame.bottom() + below, chart.title);
  out += fmt::format(R"(<text class="title" x="{}" y="16">{}</text>)", left, escaped(chart.title));
  out += axes(chart, frame) + legend(chart, places);
  for (const ChartMark& mark : chart.marks) {
    out += fmt::format(R"(<line class="mark" x1="{0:.1f}" x2="{0:.1f}" y1="{1}" y2="{2}"/>)", frame.x(mark.x),
                       frame.top(), frame.bottom());
    const bool turns = frame.x(mark.x) > width / 2;
    out += fmt::format(R"(<text class="tick{}" x="{:.1f}" y="{}">{}</text>)", turns ? " e" : "",
                       frame.x(mark.x) + (turns ? -4 : 4), frame.top() + 12, escaped(mark.text));
  }
  for (std::size_t i = 0; i < chart.series.size(); ++i) out += series_svg(chart.series[i], frame, i);
  return out + "</svg>";
}

std::string svg_file(const std::string& svg) {
  const std::size_t at = svg.find('>') + 1;
  return "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n" + svg.substr(0, at) + "<style>" +
         std::string(picture_style()) + "</style>" + svg.substr(at) + "\n";
}

}  // namespace headlab
