#include "framework/sweep/hold.h"

#include <array>
#include <cmath>
#include <utility>

#include "framework/core/check.h"

namespace headlab {
namespace {

constexpr std::array<std::pair<Hold, std::string_view>, 3> names{
    {{Hold::d_model, "d_model"}, {Hold::d_head, "d_head"}, {Hold::parameters, "parameters"}}};

Needs of_width(Needs needs, std::int64_t d_model) {
  set_d_model(needs, d_model);
  return needs;
}

/// The width whose number of parameters is nearest to `wanted`; that number grows with the width.
std::int64_t nearest_width(const Needs& needs, double wanted) {
  const auto parameters = [&](std::int64_t width) { return of_width(needs, width).parameters(); };
  std::int64_t low = 1, high = 2;
  while (parameters(high) < wanted) high *= 2;
  while (high - low > 1) {
    const std::int64_t middle = low + (high - low) / 2;
    (parameters(middle) < wanted ? low : high) = middle;
  }
  return std::abs(parameters(low) - wanted) <= std::abs(parameters(high) - wanted) ? low : high;
}

}  // namespace

std::string_view name_of(Hold hold) {
  for (const auto& [value, name] : names) {
    if (value == hold) return name;
  }
  fail("name_of", "there is no such way to count heads");
}

std::optional<Hold> hold_named(std::string_view name) {
  for (const auto& [value, its_name] : names) {
    if (its_name == name) return value;
  }
  return std::nullopt;
}

Needs needs_at(const Needs& base, Hold hold, std::int64_t heads) {
  check(heads >= 1, "ablation", "{} heads; at least 1 is needed", heads);
  Needs needs = base;
  needs.heads = heads;
  if (hold == Hold::d_model) {
    check(base.head_size == 0, "ablation", "heads of {} numbers cannot share d_model {} at every head count",
          base.head_size, base.d_model);
    check(base.d_model % heads == 0, "ablation", "d_model {} is not a multiple of {} heads", base.d_model,
          heads);
    return needs;
  }
  check(base.head_size > 0 || base.d_model % base.heads == 0, "ablation",
        "d_model {} is not a multiple of {} heads, so a head has no size to be held", base.d_model,
        base.heads);
  needs.head_size = base.each_head();
  if (hold == Hold::parameters) {
    const double wanted = base.parameters();
    needs = of_width(needs, nearest_width(needs, wanted));
    const double got = needs.parameters();
    check(std::abs(got - wanted) <= parameter_tolerance * wanted, "ablation",
          "{} heads of {} numbers cannot have the {:.0f} parameters of {} heads: the nearest is {:.0f}, with "
          "d_model {}",
          heads, needs.head_size, wanted, base.heads, got, needs.d_model);
  }
  if (needs.head_size * heads == needs.d_model) needs.head_size = 0;
  return needs;
}

}  // namespace headlab
