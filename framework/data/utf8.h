// UTF-8 as the standard has it: shortest forms only, no surrogates, nothing above U+10FFFF.
#pragma once

#include <cstddef>
#include <string_view>

namespace headlab {

/// The first character of a text.
struct Utf8 {
  enum class Kind { character, invalid, cut };
  Kind kind = Kind::character;
  std::size_t bytes = 0;  ///< of a character; otherwise how many of its bytes are right so far
  char32_t code = 0;      ///< of a character
};

/// Reads the character at the start of `text`, which must not be empty. `cut`: the text ends within a
/// character that could still become valid.
Utf8 read_utf8(std::string_view text);

}  // namespace headlab
