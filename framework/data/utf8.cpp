#include "framework/data/utf8.h"

#include <cstdint>

namespace headlab {

Utf8 read_utf8(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<std::uint8_t>(text[i]); };
  const std::uint8_t lead = byte(0);
  if (lead < 0x80) return {Utf8::Kind::character, 1, lead};
  // C0 and C1 would be overlong, F5 and above would pass U+10FFFF.
  if (lead < 0xC2 || lead > 0xF4) return {Utf8::Kind::invalid, 0, 0};
  const std::size_t length = lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
  auto code = static_cast<char32_t>(lead & (0xFF >> (length + 1)));
  for (std::size_t i = 1; i < length; ++i) {
    if (i == text.size()) return {Utf8::Kind::cut, i, 0};
    // The second byte alone decides about overlong forms (E0, F0), surrogates (ED) and U+10FFFF (F4).
    const bool second = i == 1;
    const std::uint8_t lowest = second && lead == 0xE0 ? 0xA0 : second && lead == 0xF0 ? 0x90 : 0x80;
    const std::uint8_t highest = second && lead == 0xED ? 0x9F : second && lead == 0xF4 ? 0x8F : 0xBF;
    if (byte(i) < lowest || byte(i) > highest) return {Utf8::Kind::invalid, i, 0};
    code = code << 6 | (byte(i) & 0x3Fu);
  }
  return {Utf8::Kind::character, length, code};
}

}  // namespace headlab
