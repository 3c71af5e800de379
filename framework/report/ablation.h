// An ablation as a person reads it, and as other programs do.
#pragma once

#include <filesystem>
#include <string>

#include <nlohmann/json_fwd.hpp>

#include "framework/report/terminal.h"
#include "framework/sweep/ablation.h"

namespace headlab {

/// Everything: a table with a row per head count, what the heads became, the knock-out matrix of the picked
/// run, failed runs, and the finding. A table that is too wide for the terminal is cut in two.
std::string ablation_text(const AblationResult& result, const Terminal& terminal = {});

/// What was found, in a sentence that claims no more than the intervals do: a difference counts where the
/// 95 % interval of the paired differences leaves 0 out (and, where there are seeds enough for a test, its
/// adjusted p is under 0.05); means within 0.01 of each other are called equal.
std::string finding(const AblationResult& result);

/// {"version": 1, "task", "factor": "heads", "reference", "interrupted", "options", "numbers_version",
///  "finding", "picked": a run's name or null, "levels": [{"heads", "n", "accuracy": {"mean", "ci95":
///  [low, high]}, "loss": the same, "difference": {"n", "mean", "ci95", "p", "adjusted_p"} (null for the
///  reference), "parameters", "d_head", "seconds", "confidence", "normalised_entropy", "clean_heads",
///  "cover", "prototype"}], "runs": [a run record each], "knockout": {"run", "heads", "readouts", "drop"} or
///  null}.
/// What is not known is null.
nlohmann::json ablation_json(const AblationResult& result);
/// A record per run.
std::string ablation_csv(const AblationResult& result);
/// results.json and results.csv in the sweep's folder, each replaced atomically.
void write_ablation(const AblationResult& result);

}  // namespace headlab
