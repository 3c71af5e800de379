// Heads as they are typed: "0.3", "0.3,1.2".
#pragma once

#include <string>

#include "framework/heads/knockout_runs.h"

namespace headlab {

/// LAYER.HEAD, both from 0. Error (UsageError), naming the option: anything else.
HeadId parse_head(const std::string& option, const std::string& text);
/// One or more between commas. Errors also: one that comes twice.
HeadList parse_heads(const std::string& option, const std::string& text);

}  // namespace headlab
