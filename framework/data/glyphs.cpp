#include "framework/data/glyphs.h"

#include <array>

#include <fmt/format.h>

#include "framework/data/algorithm.h"

namespace headlab {

Needs GlyphsTask::needs() const {
  Needs needs = algorithm_needs(2, 128);
  needs.patch_width = cell_pixels;
  needs.class_token = true;
  needs.class_std = algorithm_embedding_std;
  needs.readouts = {{"tick", classes}};
  needs.context = cells + 1;
  needs.causal = false;
  return needs;
}

Recipe GlyphsTask::recipe() const { return algorithm_recipe(64, 900); }

std::vector<HeadTarget> GlyphsTask::head_targets() const {
  return {{"cue>match", AttentionSite::self, -1, HeadTarget::Kind::key},
          {"class>cue", AttentionSite::self, 0, HeadTarget::Kind::key},
          {"match>cue", AttentionSite::self, -1, HeadTarget::Kind::key},
          {"class>match", AttentionSite::self, 0, HeadTarget::Kind::key}};
}

bool GlyphsTask::ink(std::int64_t shape, std::int64_t row, std::int64_t column) {
  constexpr std::array<unsigned, shapes> bits{0b101010101, 0b010111010, 0b000001111, 0b001100011,
                                              0b001101100, 0b010100101, 0b011000110, 0b011001001};
  return (bits[static_cast<std::size_t>(shape)] >> (8 - 3 * row - column) & 1U) != 0;
}

std::vector<Claim> GlyphsTask::claims() const {
  return {{.says = "accuracy", .heads = {1}, .lower = .95},
          {.says = "accuracy, less that of one head", .heads = {8, 16}, .upper = -.05, .minus = 1},
          // Knowing the ticks, but not which object is meant, gives .496.
          {.says = "accuracy",
           .heads = {1},
           .upper = .52,
           .setting = {.name = "patches by themselves, pooled", .pooled = true}}};
}

void GlyphsTask::write(Batch& batch, std::int64_t row, Random& random) const {
  float* pixels = batch.inputs[0].data<float>() + row * cells * cell_pixels;
  const std::vector<std::int64_t> cell = random.permutation(cells);
  const std::vector<std::int64_t> shape = random.permutation(shapes);
  const std::int64_t matched = random.below(objects);
  const auto draw = [&](std::int64_t place, std::int64_t which) {
    float* patch = pixels + cell[static_cast<std::size_t>(place)] * cell_pixels;
    for (std::int64_t r = 0; r < 3; ++r) {
      for (std::int64_t c = 0; c < 3; ++c) {
        if (ink(shape[static_cast<std::size_t>(which)], r, c)) patch[4 * r + c] = 1;
      }
    }
    return patch;
  };
  for (std::int64_t object = 0; object < objects; ++object) {
    const std::int64_t tick = random.below(classes);
    draw(object, object)[12 + tick] = 1;
    if (object == matched) example_of(batch.targets, row)[0] = tick;
  }
  float* cue_patch = draw(objects, matched);
  for (std::int64_t r = 0; r < 3; ++r) cue_patch[4 * r + 3] = 1;
  for (std::int64_t i = 0; i < cells * cell_pixels; ++i) {
    pixels[i] = static_cast<float>(static_cast<double>(pixels[i]) + noise * random.normal());
  }
  const std::int64_t cue = 1 + cell[objects], match = 1 + cell[static_cast<std::size_t>(matched)];
  example_of(batch.head_targets[cue_to_match], row)[cue] = match;
  example_of(batch.head_targets[class_to_cue], row)[0] = cue;
  example_of(batch.head_targets[match_to_cue], row)[match] = cue;
  example_of(batch.head_targets[class_to_match], row)[0] = match;
}

std::string GlyphsTask::spell(std::size_t, std::int64_t id) const {
  return fmt::format("{},{}", id / 4, id % 4);
}

}  // namespace headlab
