#include "framework/data/text_vocabulary.h"

#include <gtest/gtest.h>

#include "framework/data/utf8.h"
#include "tests/data/support.h"

namespace headlab {
namespace {

using Ids = std::vector<std::int64_t>;
using namespace std::string_literals;
constexpr auto code_point = TextUnit::code_point;
constexpr auto byte = TextUnit::byte;

// h, e-acute, l, l, o, LF, x
const std::string hello = "h\xC3\xA9llo\nx";

TEST(TextVocabulary, CountsCodePoints) {
  const TextVocabulary vocabulary = TextVocabulary::of(hello, code_point);
  EXPECT_EQ(vocabulary.size(), 6);
  EXPECT_EQ(vocabulary.strings(), (std::vector<std::string>{"\n", "h", "l", "o", "x", "\xC3\xA9"}));
  EXPECT_EQ(vocabulary.encode(hello), (Ids{1, 5, 2, 2, 3, 0, 4}));
}

TEST(TextVocabulary, CountsBytes) {
  const TextVocabulary vocabulary = TextVocabulary::of(hello, byte);
  EXPECT_EQ(vocabulary.size(), 7);
  EXPECT_EQ(vocabulary.encode(hello).size(), 8U);
  EXPECT_EQ(vocabulary.strings(), (std::vector<std::string>{"0a", "68", "6c", "6f", "78", "a9", "c3"}));
}

TEST(TextVocabulary, AMarkAndCrLfChangeNoCodePointIds) {
  const std::string windows = "\xEF\xBB\xBFh\xC3\xA9llo\r\nx";
  const TextVocabulary vocabulary = TextVocabulary::of(windows, code_point);
  EXPECT_EQ(vocabulary, TextVocabulary::of(hello, code_point));
  EXPECT_EQ(vocabulary.encode(windows), vocabulary.encode(hello));
  EXPECT_EQ(vocabulary.decode(vocabulary.encode(windows)), hello);
  // Only at the start, and only before a line feed.
  EXPECT_EQ(TextVocabulary::of("a\xEF\xBB\xBF", code_point).size(), 2);
  EXPECT_EQ(TextVocabulary::of("a\rb\r", code_point).size(), 3);
}

TEST(TextVocabulary, BytesAreNotChanged) {
  const std::string windows = "\xEF\xBB\xBFh\r\nx";
  const TextVocabulary vocabulary = TextVocabulary::of(windows, byte);
  EXPECT_EQ(vocabulary.encode(windows).size(), 7U);
  EXPECT_EQ(vocabulary.decode(vocabulary.encode(windows)), windows);
}

TEST(TextVocabulary, RefusesWhatIsNotUtf8WithItsOffset) {
  const auto refusal = [](const std::string& text) {
    return message_of([&] { TextVocabulary::of(text, code_point, "a.txt"); });
  };
  EXPECT_EQ(refusal("abc\xFFz"), "a.txt: not UTF-8: byte 0xff at offset 3 starts no character");
  EXPECT_EQ(refusal("\xEF\xBB\xBF\xFF"), "a.txt: not UTF-8: byte 0xff at offset 3 starts no character");
  EXPECT_EQ(refusal("ab\xC3"), "a.txt: not UTF-8: the character at offset 2 is cut off");
  EXPECT_EQ(refusal("ab\xF0\x9F\x98"), "a.txt: not UTF-8: the character at offset 2 is cut off");
  EXPECT_NE(refusal("\xC3("), "");
  EXPECT_NE(refusal("\xC0\x80"), "");          // overlong
  EXPECT_NE(refusal("\xE0\x9F\xBF"), "");      // overlong
  EXPECT_NE(refusal("\xF0\x8F\xBF\xBF"), "");  // overlong
  EXPECT_NE(refusal("\xED\xA0\x80"), "");      // surrogate
  EXPECT_NE(refusal("\xF4\x90\x80\x80"), "");  // above U+10FFFF
  EXPECT_NE(refusal("\x80"), "");
  EXPECT_EQ(refusal("\xED\x9F\xBF\xEE\x80\x80\xF4\x8F\xBF\xBF\xE0\xA0\x80\xF0\x90\x80\x80"), "");
}

TEST(TextVocabulary, BytesAcceptAnything) {
  for (const std::string& text : {"abc\xFFz"s, "a\0b"s, "ab\xC3"s}) {
    EXPECT_EQ(TextVocabulary::of(text, byte).encode(text).size(), text.size());
  }
}

TEST(TextVocabulary, AZeroByteIsACharacterLikeAnyOther) {
  const std::string text = "a\0b"s;
  const TextVocabulary vocabulary = TextVocabulary::of(text, code_point);
  EXPECT_EQ(vocabulary.encode(text), (Ids{1, 0, 2}));
  EXPECT_EQ(vocabulary.decode(Ids{1, 0, 2}), text);
}

TEST(TextVocabulary, RefusesUnknownUnitsWithTheirOffset) {
  const TextVocabulary letters = TextVocabulary::of("abc", code_point);
  EXPECT_EQ(message_of([&] { letters.encode("ab\xC3\xA9", "prompt"); }),
            "prompt: character '\xC3\xA9' at offset 2 is not among the 3 of the vocabulary");
  EXPECT_EQ(message_of([&] { TextVocabulary::of("abc", byte).encode("a\xFF", "prompt"); }),
            "prompt: byte 0xff at offset 1 is not among the 3 of the vocabulary");
  EXPECT_EQ(message_of([&] { letters.decode(Ids{0, 3}); }), "vocabulary: token 3 is not in 0 to 2");
  EXPECT_EQ(message_of([&] { letters.piece(-1); }), "vocabulary: token -1 is not in 0 to 2");
}

TEST(TextVocabulary, ComesBackFromItsStrings) {
  for (const TextUnit unit : {code_point, byte}) {
    const TextVocabulary vocabulary = TextVocabulary::of(hello, unit);
    EXPECT_EQ(TextVocabulary::from_strings(vocabulary.strings(), unit), vocabulary);
  }
  const auto refusal = [](const std::vector<std::string>& strings, TextUnit unit) {
    return message_of([&] { TextVocabulary::from_strings(strings, unit); });
  };
  EXPECT_EQ(refusal({"a", "bc"}, code_point), "vocabulary: entry 1 is not one character");
  EXPECT_EQ(refusal({""}, code_point), "vocabulary: entry 0 is not one character");
  EXPECT_EQ(refusal({"\xC3"}, code_point), "vocabulary: entry 0 is not one character");
  EXPECT_EQ(refusal({"b", "a"}, code_point), "vocabulary: entry 1 is not above the one before");
  EXPECT_EQ(refusal({"a", "a"}, code_point), "vocabulary: entry 1 is not above the one before");
  EXPECT_EQ(refusal({"0g"}, byte), "vocabulary: entry 0 is '0g', not two hexadecimal digits");
  EXPECT_EQ(refusal({"-1"}, byte), "vocabulary: entry 0 is '-1', not two hexadecimal digits");
}

TEST(TextDecoder, NeverWritesHalfACharacter) {
  const std::string smile = "\xF0\x9F\x98\x80";
  const TextVocabulary vocabulary = TextVocabulary::of("a" + smile, byte);
  TextDecoder decoder(vocabulary);
  const Ids ids = vocabulary.encode(smile);
  EXPECT_EQ(decoder.push(ids[0]), "");
  EXPECT_EQ(decoder.push(ids[1]), "");
  EXPECT_EQ(decoder.push(ids[2]), "");
  EXPECT_EQ(decoder.push(ids[3]), smile);
  EXPECT_EQ(decoder.finish(), "");
  // Broken off by the end, or by another character.
  EXPECT_EQ(vocabulary.decode(Ids{ids[0], ids[1]}), "\xEF\xBF\xBD");
  const std::int64_t a = vocabulary.find("a");
  EXPECT_EQ(vocabulary.decode(Ids{ids[0], ids[1], a}),
            "\xEF\xBF\xBD"
            "a");
  EXPECT_EQ(vocabulary.decode(Ids{ids[3], a}),
            "\xEF\xBF\xBD"
            "a");
}

TEST(TextVocabulary, ShowsControlCharactersAsEscapes) {
  const TextVocabulary vocabulary = TextVocabulary::of("\0\n\xC3\xA9"s, code_point);
  EXPECT_EQ(vocabulary.visible(0), "\\x00");
  EXPECT_EQ(vocabulary.visible(1), "\\n");
  EXPECT_EQ(vocabulary.visible(2), "\xC3\xA9");
  EXPECT_EQ(TextVocabulary::of("\xC3", byte).visible(0), "\\xc3");
}

}  // namespace
}  // namespace headlab
