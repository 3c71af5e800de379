// What a terminal can show, and text measured in its columns. Pure functions but for this_terminal().
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace headlab {

/// What may be sent to an output. The default suits a file or a pipe: Unicode, no colour, no limit.
struct Terminal {
  bool unicode = true;       ///< false: ASCII alone
  bool interactive = false;  ///< a person's terminal, not a file or a pipe
  bool colour = false;       ///< 256 colours and bold, as escape sequences
  std::int64_t width = 0;    ///< columns; 0 means no limit
};

/// What decides: the environment's variables (empty counts as unset) and the output itself.
struct TerminalFacts {
  std::string lc_all, lc_ctype, lang, term, no_color, columns;
  bool is_terminal = false;
  std::int64_t window_width = 0;  ///< what the terminal says, 0 if nothing
};

/// Unicode where the first of LC_ALL, LC_CTYPE, LANG that is not empty names UTF-8 and TERM is not "dumb".
/// Colour on a terminal whose TERM knows 256 colours (not empty, dumb, linux or vt…), unless NO_COLOR has a
/// value (no-color.org). The width, on a terminal only: the window's, else COLUMNS, else 80.
Terminal terminal_from(const TerminalFacts& facts);

/// The facts of this process and of a file descriptor, 1 being the standard output.
Terminal this_terminal(int descriptor = 1);

/// Columns that UTF-8 text takes: 0 for combining marks, 2 for East Asian wide characters and emoji, 1 for
/// anything else, a broken byte included. Control characters are not expected: see printable().
std::int64_t display_width(std::string_view text);

/// Control characters (line ends, tabs, escape sequences of a hostile file name) become spaces.
std::string printable(std::string_view text);

/// Plain ASCII for a terminal without Unicode: "±" becomes "+/-", "…" "...", "─" "-", others "?".
std::string to_ascii(std::string_view text);

/// printable() text, in ASCII where the terminal needs it.
std::string shown_on(const Terminal& terminal, std::string_view text);

/// The text if it fits in `width` columns, else its beginning and "…" (or "..." if it is ASCII).
std::string shortened(std::string_view text, std::int64_t width, bool unicode = true);

/// The text with spaces added on one side up to `width` columns; a longer text stays as it is.
std::string padded_left(std::string_view text, std::int64_t width);
std::string padded_right(std::string_view text, std::int64_t width);

/// `count` copies of a text.
std::string repeated(std::string_view text, std::int64_t count);

}  // namespace headlab
