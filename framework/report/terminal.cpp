#include "framework/report/terminal.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>
#include <utility>

#include <sys/ioctl.h>
#include <unistd.h>

namespace headlab {

namespace {

struct CodePoint {
  char32_t value;
  std::size_t bytes;
};

/// The code point at the start of a text that is not empty; a broken byte stands for itself.
CodePoint first_code_point(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(0);
  const std::size_t bytes = lead < 0x80 ? 1 : lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : lead >= 0xc2 ? 2 : 0;
  if (bytes <= 1 || bytes > text.size() || lead > 0xf4) return {lead, 1};
  char32_t value = static_cast<char32_t>(lead & (0xff >> (bytes + 1)));
  for (std::size_t i = 1; i < bytes; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return {lead, 1};
    value = (value << 6) | static_cast<char32_t>(byte(i) & 0x3f);
  }
  return {value, bytes};
}

using Range = std::pair<char32_t, char32_t>;

template <std::size_t N>
bool within(char32_t c, const std::array<Range, N>& ranges) {
  return std::any_of(ranges.begin(), ranges.end(),
                     [c](const Range& range) { return c >= range.first && c <= range.second; });
}

std::int64_t width_of(char32_t c) {
  // The common ranges of Unicode's combining and East Asian wide characters, not all of them.
  static constexpr std::array<Range, 9> zero{{{0x300, 0x36f},
                                              {0x483, 0x489},
                                              {0x591, 0x5bd},
                                              {0x610, 0x61a},
                                              {0x64b, 0x65f},
                                              {0x200b, 0x200f},
                                              {0x20d0, 0x20ff},
                                              {0xfe00, 0xfe0f},
                                              {0xfe20, 0xfe2f}}};
  static constexpr std::array<Range, 9> wide{{{0x1100, 0x115f},
                                              {0x2e80, 0xa4cf},
                                              {0xac00, 0xd7a3},
                                              {0xf900, 0xfaff},
                                              {0xfe30, 0xfe6f},
                                              {0xff00, 0xff60},
                                              {0xffe0, 0xffe6},
                                              {0x1f300, 0x1faff},
                                              {0x20000, 0x3fffd}}};
  if (c < 0x300) return 1;
  return within(c, zero) ? 0 : within(c, wide) ? 2 : 1;
}

std::string_view ascii_for(char32_t c) {
  static constexpr std::array<std::pair<char32_t, std::string_view>, 29> table{
      {{U'±', "+/-"}, {U'…', "..."}, {U'─', "-"},   {U'│', "|"},   {U'·', "."},    {U'×', "x"},
       {U'≤', "<="},  {U'≥', ">="},  {U'≠', "!="},  {U'→', "->"},  {U'←', "<-"},   {U'−', "-"},
       {U'–', "-"},   {U'—', "-"},   {U'“', "\""},  {U'”', "\""},  {U'‘', "'"},    {U'’', "'"},
       {U'Δ', "D"},   {U'δ', "d"},   {U'µ', "u"},   {U'μ', "u"},   {U'√', "sqrt"}, {U'²', "^2"},
       {U'°', "deg"}, {0xa0, " "},   {0x202f, " "}, {0x2009, " "}, {U'≈', "~"}}};
  for (const auto& entry : table) {
    if (entry.first == c) return entry.second;
  }
  return width_of(c) == 0 ? "" : "?";
}

std::string variable(const char* name) {
  const char* const value = std::getenv(name);
  return value ? value : "";
}

bool names_utf8(std::string locale) {
  for (char& c : locale) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return locale.find("utf-8") != std::string::npos || locale.find("utf8") != std::string::npos;
}

}  // namespace

Terminal terminal_from(const TerminalFacts& facts) {
  Terminal terminal;
  const std::string& locale = !facts.lc_all.empty()     ? facts.lc_all
                              : !facts.lc_ctype.empty() ? facts.lc_ctype
                                                        : facts.lang;
  const std::string& term = facts.term;
  terminal.unicode = names_utf8(locale) && term != "dumb";
  terminal.interactive = facts.is_terminal;
  if (!facts.is_terminal) return terminal;
  const bool no_colours = term.empty() || term == "dumb" || term == "linux" || term.starts_with("vt");
  terminal.colour = !no_colours && facts.no_color.empty();
  terminal.width = facts.window_width;
  if (terminal.width <= 0) {
    const std::string& columns = facts.columns;
    const auto result = std::from_chars(columns.data(), columns.data() + columns.size(), terminal.width);
    if (result.ec != std::errc() || terminal.width <= 0) terminal.width = 80;
  }
  return terminal;
}

Terminal this_terminal(int descriptor) {
  TerminalFacts facts{variable("LC_ALL"), variable("LC_CTYPE"), variable("LANG"),
                      variable("TERM"),   variable("NO_COLOR"), variable("COLUMNS")};
  facts.is_terminal = isatty(descriptor) == 1;
  winsize window{};
  if (facts.is_terminal && ioctl(descriptor, TIOCGWINSZ, &window) == 0) facts.window_width = window.ws_col;
  return terminal_from(facts);
}

std::int64_t display_width(std::string_view text) {
  std::int64_t width = 0;
  while (!text.empty()) {
    const CodePoint c = first_code_point(text);
    width += width_of(c.value);
    text.remove_prefix(c.bytes);
  }
  return width;
}

std::string printable(std::string_view text) {
  std::string result;
  while (!text.empty()) {
    const CodePoint c = first_code_point(text);
    const bool control = c.value < 0x20 || (c.value >= 0x7f && c.value < 0xa0);
    if (control)
      result += ' ';
    else
      result += text.substr(0, c.bytes);
    text.remove_prefix(c.bytes);
  }
  return result;
}

std::string to_ascii(std::string_view text) {
  std::string result;
  while (!text.empty()) {
    const CodePoint c = first_code_point(text);
    if (c.value < 0x80)
      result += text[0];
    else
      result += ascii_for(c.value);
    text.remove_prefix(c.bytes);
  }
  return result;
}

std::string shown_on(const Terminal& terminal, std::string_view text) {
  return terminal.unicode ? printable(text) : to_ascii(printable(text));
}

std::string shortened(std::string_view text, std::int64_t width, bool unicode) {
  if (display_width(text) <= width) return std::string(text);
  const std::string_view end = unicode ? "…" : "...";
  const std::int64_t room = width - display_width(end);
  if (room < 0) return repeated(".", std::max<std::int64_t>(width, 0));
  std::size_t bytes = 0;
  for (std::int64_t used = 0; bytes < text.size();) {
    const CodePoint c = first_code_point(text.substr(bytes));
    used += width_of(c.value);
    if (used > room) break;
    bytes += c.bytes;
  }
  return std::string(text.substr(0, bytes)).append(end);
}

std::string padded_left(std::string_view text, std::int64_t width) {
  return repeated(" ", width - display_width(text)).append(text);
}

std::string padded_right(std::string_view text, std::int64_t width) {
  return std::string(text).append(repeated(" ", width - display_width(text)));
}

std::string repeated(std::string_view text, std::int64_t count) {
  std::string result;
  for (std::int64_t i = 0; i < count; ++i) result += text;
  return result;
}

}  // namespace headlab
