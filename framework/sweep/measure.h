// The numbers that claims are about, of one trained model.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>

#include "framework/data/task.h"
#include "framework/train/model.h"

namespace headlab {

/// Looks at a model as often as the measures need it and keeps what it saw. Not thread-safe.
class Measuring {
 public:
  /// `accuracy`: of the whole held-out set; `run`: its folder, for what was logged in training. All must
  /// outlive it.
  Measuring(Model& model, const Task& task, std::uint64_t seed, double accuracy, std::filesystem::path run);
  ~Measuring();
  Measuring(const Measuring&) = delete;
  Measuring& operator=(const Measuring&) = delete;

  /// Nothing where the model has no such thing: never half right, no head to switch off. Errors: a target or
  /// answer that the task does not have.
  std::optional<double> operator()(const Claim& claim);

 private:
  struct Seen;
  std::unique_ptr<Seen> seen_;
};

}  // namespace headlab
