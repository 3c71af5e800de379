// "Did you mean …?": the nearest of a few names. Pure functions of text; thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace headlab {

/// The Damerau–Levenshtein distance in its restricted form (optimal string alignment): insertions, deletions,
/// replacements and swaps of neighbours, no part edited twice. Counted in bytes; ASCII letters compare
/// without case. O(|a| · |b|).
std::int64_t edit_distance(std::string_view a, std::string_view b);

/// The candidate nearest to a mistyped name, ties to the first; none when even that one is further away than
/// a third of the name's length (at least one edit is allowed), or the name is longer than 64 bytes. Leading
/// dashes count for nothing, so that "--step", "-steps" and "steps" all find "--steps".
std::optional<std::string> nearest_name(std::string_view name, std::span<const std::string> candidates);

/// The `count` candidates nearest to a name, nearest first, ties in their order, however far away; for
/// messages that list what there is. None when the name is longer than 256 bytes.
std::vector<std::string> nearest_names(std::string_view name, std::span<const std::string> candidates,
                                       std::size_t count);

/// " (did you mean '--steps'?)", to be put behind an error message, or nothing.
std::string did_you_mean(std::string_view name, std::span<const std::string> candidates);

}  // namespace headlab
