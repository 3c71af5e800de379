// The vocabulary of a text: its distinct units in rising order. A unit is a code point (the default) or a
// byte.
//
// Code points: the text must be UTF-8; a byte-order mark at its start is dropped and CR LF becomes LF, in
// files and prompts alike. Bytes: any content, nothing is changed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace headlab {

enum class TextUnit { code_point, byte };

/// An immutable value.
class TextVocabulary {
 public:
  /// The units of this text. Errors, naming `where`: not UTF-8, with the byte and its offset.
  static TextVocabulary of(std::string_view text, TextUnit unit, std::string_view where = "text");
  /// From what strings() returned. Errors: an entry that is not one unit, entries that are not rising.
  static TextVocabulary from_strings(const std::vector<std::string>& strings, TextUnit unit);
  /// One per id, valid UTF-8 for JSON: the character, or the byte as two hexadecimal digits.
  std::vector<std::string> strings() const;

  TextUnit unit() const { return unit_; }
  std::int64_t size() const { return static_cast<std::int64_t>(pieces_.size()); }

  /// Errors, naming `where`: not UTF-8; a unit that the vocabulary does not have, with its offset.
  std::vector<std::int64_t> encode(std::string_view text, std::string_view where = "text") const;
  /// Always UTF-8: in a byte vocabulary, bytes that make no character become U+FFFD. Error: an id out of
  /// range.
  std::string decode(std::span<const std::int64_t> ids) const;
  /// The bytes of one unit; of a byte vocabulary perhaps a part of a character. Error: an id out of range.
  const std::string& piece(std::int64_t id) const;
  /// One unit for display on one line: control characters and odd bytes as escapes, "\n", "\x00".
  std::string visible(std::int64_t id) const;
  /// The id of a unit, or -1.
  std::int64_t find(std::string_view piece) const;

  friend bool operator==(const TextVocabulary& a, const TextVocabulary& b) {
    return a.unit_ == b.unit_ && a.pieces_ == b.pieces_;
  }

 private:
  TextVocabulary(std::vector<std::string> pieces, TextUnit unit);

  TextUnit unit_;
  std::vector<std::string> pieces_;
  std::unordered_map<std::string, std::int64_t> ids_;
};

/// Turns tokens into text as they come, whole characters only.
class TextDecoder {
 public:
  /// `vocabulary` must outlive the decoder.
  explicit TextDecoder(const TextVocabulary& vocabulary) : vocabulary_(&vocabulary) {}
  /// What can be written now; "" in the middle of a character.
  std::string push(std::int64_t id);
  /// U+FFFD if a character was left unfinished, else "".
  std::string finish();

 private:
  const TextVocabulary* vocabulary_;
  std::string pending_;
};

}  // namespace headlab
