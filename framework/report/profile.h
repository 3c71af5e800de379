// A recorded profile as tables and as a file for a trace viewer.
#pragma once

#include <filesystem>
#include <string>

#include "framework/core/profile.h"
#include "framework/report/terminal.h"

namespace headlab {

/// Two tables, the most time first: by operation and pass, and by layer, where layers that differ in numbers
/// alone are one line ("blocks.*.mlp.up"). Bytes are those that an operation cannot do without moving, so
/// GB/s may be above what memory gives, where a cache holds them.
std::string profile_tables(const profile::Profile& profile, const Terminal& terminal = {});

/// Chrome's trace format (chrome://tracing, ui.perfetto.dev): nested spans of steps, passes, layers and
/// operations, with layer, GFLOP/s and GB/s of each. Written atomically. Error: it cannot be written.
void write_trace(const std::filesystem::path& file, const profile::Profile& profile);

}  // namespace headlab
