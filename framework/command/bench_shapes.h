// The shapes that `headlab bench` measures: attention layers and whole training steps, from a JSON file.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace headlab {

/// One attention layer with its projections: x [batch, tokens, d_model].
struct AttentionShape {
  std::string name;
  std::int64_t batch = 1, tokens = 1, d_model = 1, heads = 1;
  bool causal = false;
};

/// One training step of a decoder with a tied read-out on [batch, tokens].
struct TrainingShape {
  std::string name;
  std::int64_t layers = 1, heads = 1, d_model = 1, tokens = 1, batch = 1, vocabulary = 2;
};

struct BenchShapes {
  std::vector<AttentionShape> attention;
  std::vector<TrainingShape> training;
};

/// {"mha": [{"name", "B", "T", "d", "h", "causal"}, …], "train": [{"name", "L", "h", "d", "T", "B", "V"},
/// …]}, either list may be missing. Errors name `where`, the case and the key: no JSON; a key that is missing
/// or unknown; a value of another kind or out of range; heads that do not divide d; names that
/// repeat or hold a comma.
BenchShapes parse_shapes(std::string_view text, const std::string& where);

/// Errors: cannot be read, and the above.
BenchShapes read_shapes(const std::filesystem::path& file);

/// The text of the file that is compiled in: the shapes of the comparison with other frameworks.
std::string_view shipped_shapes();

}  // namespace headlab
