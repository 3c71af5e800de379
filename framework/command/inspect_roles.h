// What `headlab inspect` says of roles: a line per head, a summary, and figures over the seeds of a level.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "framework/heads/roles.h"
#include "framework/sweep/statistics.h"

namespace headlab {

/// One run of a level: what its roles are, in numbers.
struct SeedRoles {
  std::uint64_t seed = 0;
  std::int64_t heads = 0, with_role = 0, coverage = 0;
  double specialisation = 0;
  double redundancy = 0;            ///< heads with a role / different roles, whole model
  std::optional<double> diversity;  ///< mean over layers that have one
  std::vector<std::string> roles;   ///< each name once
};
SeedRoles seed_roles(std::uint64_t seed, const HeadAnalysis& heads, const RoleAnalysis& roles);

std::string roles_text(const HeadAnalysis& heads, const RoleAnalysis& roles,
                       const std::vector<SeedRoles>& seeds);

/// Of two seeds or more, in a sentence: how many roles all of them have.
std::string seeds_verdict(const std::vector<SeedRoles>& seeds);

/// Of one head.
nlohmann::json roles_json(const HeadRoles& head);
/// Of the model: layers, compositions, in-context score, what is absent and why.
nlohmann::json model_roles_json(const HeadAnalysis& heads, const RoleAnalysis& roles);
nlohmann::json seeds_json(const std::vector<SeedRoles>& seeds);

}  // namespace headlab
