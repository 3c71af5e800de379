#include "framework/data/reverse.h"

namespace headlab {

std::vector<HeadTarget> ReverseTask::head_targets() const {
  return {{"alignment", AttentionSite::cross, 0, HeadTarget::Kind::key}};
}

std::vector<Rung> ReverseTask::ladder() const { return {{1, 1.0}, {4, 1.0}, {8, 0.998}, {16, 0.920}}; }

std::int64_t ReverseTask::source_begin(std::int64_t length) const { return slots - length - 1; }

std::int64_t ReverseTask::source_symbol(std::int64_t position, std::int64_t length) const {
  return length - 1 - position;
}

}  // namespace headlab
