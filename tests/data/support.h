// What the tests of this room share.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "framework/data/addition.h"
#include "framework/data/agreement.h"
#include "framework/data/ask.h"
#include "framework/data/copy.h"
#include "framework/data/coreference.h"
#include "framework/data/glyphs.h"
#include "framework/data/induction.h"
#include "framework/data/offsets.h"
#include "framework/data/prev.h"
#include "framework/data/recall.h"
#include "framework/data/reverse.h"
#include "framework/data/roles.h"
#include "framework/data/senses.h"
#include "framework/data/sort.h"
#include "framework/data/translate.h"

namespace headlab {

inline std::vector<std::unique_ptr<Task>> generated_tasks() {
  std::vector<std::unique_ptr<Task>> tasks;
  tasks.push_back(std::make_unique<OffsetsTask>());
  tasks.push_back(std::make_unique<PrevTask>());
  tasks.push_back(std::make_unique<RolesTask>());
  tasks.push_back(std::make_unique<InductionTask>());
  tasks.push_back(std::make_unique<CopyTask>());
  tasks.push_back(std::make_unique<ReverseTask>());
  tasks.push_back(std::make_unique<RecallTask>());
  tasks.push_back(std::make_unique<AskTask>());
  tasks.push_back(std::make_unique<SortTask>());
  tasks.push_back(std::make_unique<AdditionTask>());
  tasks.push_back(std::make_unique<AgreementTask>());
  tasks.push_back(std::make_unique<CoreferenceTask>());
  tasks.push_back(std::make_unique<SensesTask>());
  tasks.push_back(std::make_unique<TranslateTask>());
  tasks.push_back(std::make_unique<GlyphsTask>());
  return tasks;
}

/// Every number of a batch, in a fixed order.
inline std::vector<double> numbers(const Batch& batch) {
  std::vector<Array> arrays = batch.inputs;
  arrays.push_back(batch.targets);
  if (batch.source_valid) arrays.push_back(batch.source_valid);
  if (batch.valid) arrays.push_back(batch.valid);
  arrays.insert(arrays.end(), batch.probes.begin(), batch.probes.end());
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
