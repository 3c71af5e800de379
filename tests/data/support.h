// What the tests of this room share.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "framework/data/copy.h"
#include "framework/data/induction.h"
#include "framework/data/offsets.h"
#include "framework/data/prev.h"
#include "framework/data/reverse.h"
#include "framework/data/roles.h"

namespace headlab {

inline std::vector<std::unique_ptr<Task>> generated_tasks() {
  std::vector<std::unique_ptr<Task>> tasks;
  tasks.push_back(std::make_unique<OffsetsTask>());
  tasks.push_back(std::make_unique<PrevTask>());
  tasks.push_back(std::make_unique<RolesTask>());
  tasks.push_back(std::make_unique<InductionTask>());
  tasks.push_back(std::make_unique<CopyTask>());
  tasks.push_back(std::make_unique<ReverseTask>());
  return tasks;
}

/// Every number of a batch, in a fixed order.
inline std::vector<double> numbers(const Batch& batch) {
  std::vector<Array> arrays = batch.inputs;
  arrays.push_back(batch.targets);
  if (batch.source_valid) arrays.push_back(batch.source_valid);
  arrays.insert(arrays.end(), batch.head_targets.begin(), batch.head_targets.end());
  std::vector<double> all;
  for (const Array& array : arrays) {
    for (std::int64_t i = 0; i < array.size(); ++i) all.push_back(array.at(i));
  }
  return all;
}

/// Element [b, t] of an i64 array [B, T], or [b, t, r] of [B, T, R].
inline std::int64_t at(const Array& array, std::int64_t b, std::int64_t t, std::int64_t r = 0) {
  const std::int64_t last = array.rank() == 3 ? array.dim(2) : 1;
  return array.data<std::int64_t>()[(b * array.dim(1) + t) * last + r];
}

/// The text of the Error that f throws, or "" if it throws none.
template <class F>
std::string message_of(const F& f) {
  try {
    f();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

}  // namespace headlab
