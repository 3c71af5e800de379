#include "framework/data/reverse.h"

namespace headlab {

std::vector<Rung> ReverseTask::ladder() const { return {{1, 1.0}, {4, 1.0}, {8, 0.998}, {16, 0.920}}; }

TranscriptionTask::Least ReverseTask::least() const {
  return {.whole_of_sixteen = .80, .aligned_of_one = .70, .aligned_of_four = .80};
}

std::int64_t ReverseTask::source_begin(std::int64_t length) const { return slots - length - 1; }

std::int64_t ReverseTask::source_symbol(std::int64_t position, std::int64_t length) const {
  return length - 1 - position;
}

}  // namespace headlab
