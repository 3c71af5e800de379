#include "framework/report/html.h"

#include <cmath>

#include <fmt/format.h>

#include "framework/core/check.h"
#include "framework/report/format.h"

namespace headlab {

std::string escaped(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\'':
        out += "&#39;";
        break;
      default:
        if (static_cast<unsigned char>(c) < 0x20) {
          out += c == '\n' ? "↵" : "␣";
        } else {
          out += c;
        }
    }
  }
  return out;
}

std::string html_number(double value, int decimals) {
  if (!std::isfinite(value)) return "–";
  return fmt::format(R"(<data value="{}">{}</data>)", value, fixed(value, decimals));
}

std::string html_digits(double value) {
  if (!std::isfinite(value)) return "–";
  return fmt::format(R"(<data value="{}">{:.3g}</data>)", value, value);
}

std::string html_p(double value) {
  if (!(value < 0.001)) return html_number(value);
  return fmt::format(R"(<data value="{}">&lt; 0.001</data>)", value);
}

std::string html_whole(std::int64_t value) {
  return fmt::format(R"(<data value="{}">{}</data>)", value, grouped(value));
}

HtmlTable& HtmlTable::row(std::vector<std::string> cells) {
  check(cells.size() == columns_.size(), "html table", "a row has {} cells for {} columns", cells.size(),
        columns_.size());
  rows_.push_back(std::move(cells));
  return *this;
}

HtmlTable& HtmlTable::note(std::string html) {
  notes_.push_back(std::move(html));
  return *this;
}

std::string HtmlTable::str() const {
  const auto side = [&](std::size_t i) {
    return columns_[i].align == Align::left    ? ""
           : columns_[i].align == Align::right ? R"( class="r")"
                                               : R"( class="c")";
  };
  std::string out = fmt::format(
      "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"{0}\"><table>"
      "<caption>{0}</caption><thead><tr>",
      escaped(caption_));
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    out += fmt::format("<th scope=\"col\"{}>{}</th>", side(i), escaped(columns_[i].heading));
  }
  out += "</tr></thead><tbody>";
  for (const std::vector<std::string>& cells : rows_) {
    out += "<tr>";
    for (std::size_t i = 0; i < cells.size(); ++i) {
      out += i == 0 ? fmt::format("<th scope=\"row\"{}>{}</th>", side(i), cells[i])
                    : fmt::format("<td{}>{}</td>", side(i), cells[i]);
    }
    out += "</tr>";
  }
  out += "</tbody></table></div>\n";
  for (const std::string& note : notes_) out += fmt::format("<p class=\"note\">{}</p>\n", note);
  return out;
}

std::string svg_opening(std::string_view kind, double width, double height, std::string_view title) {
  return fmt::format(R"(<svg class="picture {3}" role="img" viewBox="0 0 {0} {1}" width="{0}" height="{1}" )"
                     R"(xmlns="http://www.w3.org/2000/svg" aria-label="{2}"><title>{2}</title>)",
                     width, height, escaped(title), kind);
}

std::string html_details(std::string_view summary, std::string_view body) {
  return fmt::format("<details><summary>{}</summary>{}</details>\n", escaped(summary), body);
}

}  // namespace headlab
