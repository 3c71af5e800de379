// What stays the same when the number of heads changes: the three ways of counting heads.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "framework/data/needs.h"

namespace headlab {

enum class Hold : std::uint8_t {
  d_model,     ///< heads share d_model: more heads are smaller heads
  d_head,      ///< heads keep their size at the same d_model: more heads are more parameters
  parameters,  ///< heads keep their size, and d_model shrinks so that the number of parameters stays
};

/// "d_model", "d_head", "parameters"; the second form reads them.
std::string_view name_of(Hold hold);
std::optional<Hold> hold_named(std::string_view name);

/// A level's number of parameters may be this far from the one to be held.
constexpr double parameter_tolerance = 0.05;

/// What a model of `heads` heads needs where that of `base` is compared with it. The size of a head that
/// d_head and parameters hold is base.each_head(), and the parameters are those of `base`; d_model is then
/// the whole number that comes nearest. A head size that is d_model / heads anyway is left 0, so that the
/// same model is the same run whatever is held. Errors: heads < 1; d_model that is no multiple of the heads
/// that share it; with Hold::d_model a head size; no d_model within parameter_tolerance.
Needs needs_at(const Needs& base, Hold hold, std::int64_t heads);

}  // namespace headlab
