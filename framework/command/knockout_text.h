// What `headlab knockout` says, as text for people and as JSON for programs.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "framework/heads/importance.h"
#include "framework/heads/knockout_study.h"
#include "framework/heads/shapley.h"
#include "framework/sweep/pick.h"
#include "framework/train/run.h"

namespace headlab {

/// One whole pass a knock-out against what was done.
struct ReuseCheck {
  double seconds = 0, whole_seconds = 0;
  bool same_bits = false;
};

/// What all answers share.
struct KnockoutAsked {
  const LoadedRun& run;
  const ChosenRun& chosen;
  const KnockoutOptions& options;
  std::vector<std::string> columns;  ///< of the matrix: read-outs or kinds of answers; empty for one alone
  bool kinds = false;                ///< which of both
};

struct SingleHeads {
  KnockoutMatrix matrix;
  Importance importance;
  ImportanceForm form = ImportanceForm::example;
  bool in_layers = false;
  std::optional<ReuseCheck> check;
};

std::string knockout_header(const KnockoutAsked& asked, const Answers& intact);

/// "3 of 16 heads matter (Holm, α = 0.05, ≥ 1 % of the loss): 0.1, 0.4, 1.2." and what that speaks of.
std::string verdict(const KnockoutMatrix& matrix);
std::string singles_text(const SingleHeads& found, const KnockoutAsked& asked);
std::string sets_text(const std::vector<SetLoss>& sets, const Answers& intact, const KnockoutAsked& asked);
std::string cumulative_text(const std::vector<Answers>& steps, const HeadList& order,
                            const KnockoutAsked& asked);
std::string curve_text(const PruneCurve& curve, const Answers& intact, const KnockoutAsked& asked);
std::string kept_text(const std::vector<KeptHead>& kept, const Answers& intact, const KnockoutAsked& asked);
std::string shapley_text(const Shapley& shapley, const std::optional<ReuseCheck>& check,
                         const Answers& intact, const KnockoutAsked& asked);

nlohmann::json knockout_json(const KnockoutAsked& asked, const Answers& intact);
nlohmann::json loss_json(const KnockoutLoss& loss, const KnockoutAsked& asked);
nlohmann::json singles_json(const SingleHeads& found, const KnockoutAsked& asked);
nlohmann::json sets_json(const std::vector<SetLoss>& sets, const KnockoutAsked& asked);
nlohmann::json cumulative_json(const std::vector<Answers>& steps, const HeadList& order,
                               const KnockoutAsked& asked);
nlohmann::json curve_json(const PruneCurve& curve);
nlohmann::json kept_json(const std::vector<KeptHead>& kept, const KnockoutAsked& asked);
nlohmann::json shapley_json(const Shapley& shapley, const std::optional<ReuseCheck>& check);

}  // namespace headlab
