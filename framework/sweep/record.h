// RunRecord: what one finished run of a sweep leaves behind, kept as result.json in the run's folder.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

namespace headlab {

/// What the heads of a trained model became, over the held-out set.
struct HeadFigures {
  double confidence = 0;              ///< mean over heads and queries of the largest weight
  double normalised_entropy = 0;      ///< mean over heads and queries of H / ln n
  std::int64_t heads = 0;             ///< in all layers
  std::int64_t clean_heads = 0;       ///< heads with more than 0.8 of their mass on one target
  std::int64_t cover = 0;             ///< targets that own a clean head
  std::int64_t targets = 0;           ///< that the task names
  std::int64_t distinct_offsets = 0;  ///< different offsets of largest mean mass
  /// Over how many of the task's `key` targets a head spreads its mass on them: e^H of the shares, the mean
  /// over heads weighted by that mass; 1: a target each. Absent without such targets.
  std::optional<double> blended = {};
};

struct RunRecord {
  std::int64_t heads = 0;
  std::uint64_t seed = 0;
  std::string name;                    ///< of the run's folder
  std::string setting = {};            ///< of a grid, "lr=0.01"; the sweep knows it, result.json does not
  std::optional<std::string> failure;  ///< why training failed; then only the lines above count
  double accuracy = 0;                 ///< on the held-out set, as the task counts it
  double loss = 0;                     ///< on the held-out set
  double train_loss = 0;               ///< of the last step
  std::int64_t steps = 0;
  std::int64_t parameters = 0;
  std::int64_t head_size = 0;
  std::optional<double> seconds;  ///< of training, on one thread; absent where a killed run left only its end
  std::optional<HeadFigures> figures;  ///< absent for a model without heads
  std::vector<double> curve;           ///< training loss, averaged over equal pieces of the course
};

nlohmann::json to_json(const RunRecord& record);
/// Error: a field is missing or has the wrong type (named).
RunRecord run_record_from_json(const nlohmann::json& json);

}  // namespace headlab
