#include "framework/data/copy.h"

namespace headlab {

std::vector<Rung> CopyTask::ladder() const { return {{1, 0.998}, {4, 1.0}, {8, 0.997}, {16, 0.960}}; }

TranscriptionTask::Least CopyTask::least() const {
  return {.whole_of_sixteen = .90, .aligned_of_one = .95, .aligned_of_four = .90};
}

std::int64_t CopyTask::source_begin(std::int64_t) const { return 0; }

std::int64_t CopyTask::source_symbol(std::int64_t position, std::int64_t) const { return position; }

}  // namespace headlab
