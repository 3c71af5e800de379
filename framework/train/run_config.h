// RunConfig: everything that fixes a training's numbers, and its JSON form.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "framework/data/needs.h"
#include "framework/data/recipe.h"

namespace headlab {

/// A head that is switched off (its gate is 0) once this many steps are done, until the end.
struct HeadOff {
  std::int64_t layer = 0;  ///< index among the model's layers with heads
  std::int64_t head = 0;
  std::int64_t step = 0;
  friend bool operator==(const HeadOff&, const HeadOff&) = default;
};

/// Kept in the run folder as config.json and in every checkpoint, hashed by sweeps. The same values give the
/// same bits.
struct RunConfig {
  std::string task;  ///< a task's name, or the path of a text file
  Needs needs;
  Recipe recipe;
  std::uint64_t seed = 0;
  std::int64_t accumulation = 1;  ///< micro-batches a step; recipe.batch examples in all
  std::vector<HeadOff> heads_off = {};
};

/// Every field under its own name, choices as their names; numbers survive the round trip bit for bit.
nlohmann::json to_json(const RunConfig& config);
nlohmann::json to_json(const Needs& needs);
/// Strict. Error: a field is missing, unknown or of the wrong type; the message begins with `where` and names
/// the field, "config: needs.heads: …".
RunConfig run_config_from_json(const nlohmann::json& json, std::string_view where = "config");

/// Error unless both are equal: "<where>: needs.heads is 4 in <a_name> and 8 in <b_name>", the first field
/// that differs.
void check_same(const nlohmann::json& a, const nlohmann::json& b, std::string_view where,
                std::string_view a_name, std::string_view b_name);

/// Error: settings that no training can have (sizes that are not positive, an accumulation that does not
/// divide the batch, a warm-up longer than the training, …); names the field and its value.
void validate(const RunConfig& config);

}  // namespace headlab
