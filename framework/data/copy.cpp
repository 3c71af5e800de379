#include "framework/data/copy.h"

namespace headlab {

std::vector<HeadTarget> CopyTask::head_targets() const {
  return {{"alignment", AttentionSite::cross, 0, HeadTarget::Kind::key}};
}

std::vector<Rung> CopyTask::ladder() const { return {{1, 0.998}, {4, 1.0}, {8, 0.997}, {16, 0.960}}; }

std::vector<Claim> CopyTask::claims() const {
  return {
      {.says = "whole sequences", .heads = {1, 4, 8}, .lower = .97},
      {.says = "whole sequences", .heads = {16}, .lower = .90},
      {.says = "alignment, mean over heads", .measure = Measure::mean_relation, .heads = {1}, .lower = .95},
      {.says = "alignment, mean over heads", .measure = Measure::mean_relation, .heads = {4}, .lower = .90},
      {.says = "alignment, mean over heads",
       .measure = Measure::mean_relation,
       .heads = {8},
       .lower = .70,
       .upper = .95},
      {.says = "alignment, mean over heads",
       .measure = Measure::mean_relation,
       .heads = {16},
       .lower = .50,
       .upper = .75},
      {.says = "symbols lost without cross attention",
       .measure = Measure::accuracy_lost,
       .heads = {1, 4, 8, 16},
       .lower = .80,
       .answer = 0},
      {.says = "symbols lost without any one head",
       .measure = Measure::worst_head,
       .heads = {4, 8, 16},
       .upper = .15,
       .answer = 0}};
}

std::int64_t CopyTask::source_begin(std::int64_t) const { return 0; }

std::int64_t CopyTask::source_symbol(std::int64_t position, std::int64_t) const { return position; }

}  // namespace headlab
