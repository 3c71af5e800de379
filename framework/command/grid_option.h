// --grid OPTION=a,b,c: another option as a second factor of a comparison.
#pragma once

#include <string>
#include <vector>

#include "framework/command/training_options.h"

namespace headlab {

struct GridOption {
  struct Value {
    std::string setting;  ///< "lr=0.01"
    TrainingOptions training;
  };
  std::string name;  ///< "lr"
  std::vector<Value> values;
};

/// `text` as typed, "lr=0.01,0.003"; `training` with the option at each value in turn. Errors (UsageError):
/// no such option (with the nearest one); one that is given by itself too; values that it would refuse.
GridOption parse_grid(const std::string& text, const TrainingOptions& training);

}  // namespace headlab
