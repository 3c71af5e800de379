// The verdict of a reproduction, for people and for programs.
#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>

#include "framework/report/terminal.h"
#include "framework/sweep/reproduce.h"

namespace headlab {

/// A table of claims and a sentence.
std::string reproduction_text(const Reproduction& result, const Terminal& terminal = {});
/// "offsets: 14 of 14 claims hold over 5 seeds."
std::string verdict(const Reproduction& result);
/// {"task", "seeds", "runs", "failed", "holds", "claims": [{"says", "setting", "heads", "minus", "lower",
/// "upper", "values", "mean", "ci95", "in_range", "needs_seeds", "holds"}]}; what is not there is null.
nlohmann::json reproduction_json(const Reproduction& result);

}  // namespace headlab
