// An ablation as a person reads it, and as other programs do.
#pragma once

#include <filesystem>
#include <string>

#include <nlohmann/json_fwd.hpp>

#include "framework/report/made_by.h"
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

/// Which jobs heads do at each level, "With h=8 every one of 5 seeds grows a clean head for each of the 8
/// targets. …"; empty where the task names no targets.
std::string jobs_of_heads(const AblationResult& result);

/// {"version": 1, "task", "factor": "heads", "hold", "grid": null, "reference", "interrupted", "options",
///  "numbers_version", "finding", "jobs", "picked": a run's name or null, "levels": [{"heads", "setting",
///  "n", "accuracy": {"mean", "ci95": [low, high]}, "loss": the same, "difference": {"n", "mean", "ci95",
///  "p", "adjusted_p", "verdict"} (null for the reference), "loss_difference", "parameters", "d_model",
///  "d_head", "low_rank", "learning_rate", "learning_rate_choice": {"seeds", "at_the_edge", "tried":
///  [{"learning_rate", "loss": one a seed}]} or null, "seconds", "confidence", "normalised_entropy",
///  "clean_heads", "cover", "blended", "prototype", "curve": {"steps", "mean", "ci95"}}], "runs": [a run
///  record each, its "curve" at the steps of its level's], "knockout": {"run", "heads", "readouts", "drop",
///  "interval": half of a 95 % one, as "drop"} or null, "published":
///  {"source", "levels": [{"heads", "bleu", "perplexity"}]}}.
/// What is not known is null.
nlohmann::json ablation_json(const AblationResult& result);
/// A record per run.
std::string ablation_csv(const AblationResult& result);
/// results.json, with what made it, and results.csv in the sweep's folder, each replaced atomically.
void write_ablation(const AblationResult& result, const MadeBy& made_by);

/// Of a grid: a table of head count × value, one of the differences, what was found at each value and in all.
std::string ablation_text(const AblationGrid& grid, const Terminal& terminal = {});
/// Over all values: how many comparisons are certain, and the best mean.
std::string finding(const AblationGrid& grid);
/// As of one result, with the levels and runs of all values, "grid": {"option", "settings"}, and "findings":
/// [{"setting", "config", "finding", "jobs"}].
nlohmann::json ablation_json(const AblationGrid& grid);
std::string ablation_csv(const AblationGrid& grid);
void write_ablation(const AblationGrid& grid, const MadeBy& made_by);

}  // namespace headlab
