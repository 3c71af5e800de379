// A short, repeatable search beside the fuzzer: valid files with a few bytes, numbers or pieces changed.
#include <array>
#include <cstring>
#include <string_view>

#include "framework/core/random.h"
#include "framework/files/atomic_file.h"
#include "framework/files/safetensors.h"
#include "tests/support/temporary_folder.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace headlab {
namespace {

constexpr std::array<std::string_view, 22> pieces{"{",         "}",
                                                  "[",         "]",
                                                  ",",         ":",
                                                  "\"",        "\\",
                                                  "\\u0000",   "-1",
                                                  "1.5",       "null",
                                                  "1e308",     "F64",
                                                  "\"dtype\"", "\0",
                                                  "\xff",      "__metadata__",
                                                  "[[[",       "{\"a\":",
                                                  "0",         "9223372036854775807"};

std::size_t place(Random& random, std::size_t size) {
  return static_cast<std::size_t>(random.below(static_cast<std::int64_t>(size) + 1));
}

std::string mutated(std::string file, Random& random) {
  const std::int64_t changes = 1 + random.below(4);
  for (std::int64_t i = 0; i < changes; ++i) {
    // Mostly in the header, which is where decisions are made.
    const std::size_t at =
        place(random, std::min<std::size_t>(file.size(), random.bernoulli(0.8) ? 300 : 10'000));
    switch (random.below(7)) {
      case 0:
        if (at < file.size()) file[at] = static_cast<char>(random.below(256));
        break;
      case 1:
        file.erase(at, place(random, 12));
        break;
      case 2:
        file.insert(at, pieces[place(random, pieces.size() - 1)]);
        break;
      case 3:
        file.resize(at);
        break;
      case 4:
        if (at < file.size()) file[at] = static_cast<char>(file[at] ^ (1 << random.below(8)));
        break;
      case 5:  // another digit
        if (const std::size_t digit = file.find_first_of("0123456789", at); digit != std::string::npos) {
          file[digit] = static_cast<char>('0' + random.below(10));
        }
        break;
      default:
        file.insert(at, file.substr(place(random, file.size()), 40));
        break;
    }
  }
  // Half of the time the length is made to fit again, so that the change reaches the JSON parser.
  if (random.bernoulli(0.5) && file.size() > 8) {
    const std::size_t end = file.find("}}");
    const std::uint64_t length = (end == std::string::npos ? file.size() : end + 2) - 8;
    std::memcpy(file.data(), &length, sizeof length);
  }
  return file;
}

TEST(SafetensorsFuzz, MutatedFilesAreReadOrRefused) {
  const TemporaryFolder folder;
  write_safetensors(folder / "a", {{"w", Array::full({3, 5}, 1)}, {"i", Array::full({2}, 1, DType::i64)}},
                    {{"format", "pt"}, {"n\"", "\\"}});
  write_safetensors(folder / "b", {{"e", Array({0, 3})}, {"s", Array::full({}, 1, DType::u8)}});
  write_safetensors(folder / "c", {}, {{"only", "metadata"}});
  for (const char* name : {"a", "b", "c"}) {
    const std::string file = read_file(folder / name);
    for (std::uint64_t i = 0; i < 2000; ++i) {
      Random random(i, Stream::data);
      const std::string input = mutated(file, random);
      LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(input.data()), input.size());
    }
  }
}

}  // namespace
}  // namespace headlab
