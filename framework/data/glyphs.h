// glyphs: vision in miniature. An image of 16 cells of 4×4 pixels, which are the patches. Five cells hold
// objects of different shapes (3×3, upper left of the cell), each with a tick in row 3 at column 0 … 3; one
// cell, the cue, repeats the shape of one of them, with a bar in column 3 in place of the tick. Class: the
// tick of the object that is shaped like the cue. Two layers: find the match of the cue, then bring it to the
// class token. The counter-example to the ladder: more heads learn more slowly here.
#pragma once

#include "framework/data/task.h"

namespace headlab {

class GlyphsTask final : public Task {
 public:
  static constexpr std::int64_t cells = 16, cell_pixels = 16, shapes = 8, objects = 5, classes = 4;
  static constexpr double noise = 0.2;  ///< deviation of what is added to every pixel, which is 0 or 1
  enum Target : int { cue_to_match, class_to_cue, match_to_cue, class_to_match };

  std::string name() const override { return "glyphs"; }
  std::string shows() const override {
    return "vision: patches that match; more heads learn more slowly here";
  }
  Needs needs() const override;
  Recipe recipe() const override;
  std::int64_t measured_steps() const override { return 500; }
  /// From the cue to its match and on from the class token to the cue; or the other way round.
  std::vector<HeadTarget> head_targets() const override;
  std::vector<Claim> claims() const override;
  std::vector<Rung> ladder() const override { return {{1, 0.991}, {4, 0.884}, {8, 0.771}, {16, 0.796}}; }
  double chance() const override { return 1.0 / classes; }
  /// 1 where the shape has ink, row by row from the highest bit of nine.
  static bool ink(std::int64_t shape, std::int64_t row, std::int64_t column);

 protected:
  void write(Batch& batch, std::int64_t row, Random& random) const override;
  std::string spell(std::size_t stream, std::int64_t id) const override;
};

}  // namespace headlab
