// How far a sweep is, on a terminal.
#pragma once

#include <string>

#include "framework/sweep/grid.h"

namespace headlab {

/// One line on standard error, rewritten in place; silent where that is no terminal.
class SweepLine {
 public:
  /// `before` stands at the line's beginning.
  explicit SweepLine(std::string before = {});
  void show(const SweepProgress& progress);
  void end();

 private:
  std::string before_;
  bool on_;
};

}  // namespace headlab
