// What optimisers have in common: which parameters a step touches, step counts, state for checkpoints.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "framework/kernels/optimise.h"
#include "framework/optim/parameter_buffer.h"

namespace headlab {

/// Works on a ParameterBuffer, which must outlive it. Not thread-safe. The bits of a step do not depend on
/// the number of threads.
class Optimiser {
 public:
  virtual ~Optimiser() = default;
  Optimiser(const Optimiser&) = delete;
  Optimiser& operator=(const Optimiser&) = delete;

  /// Updates every parameter that has a gradient; the others keep their value, moments and step count. A
  /// graph that still needs an updated value can no longer run backward. Does not look for NaN in the
  /// gradients: see clip_gradients(). Error: lr is negative or not finite.
  ///
  /// Gradients are used scaled, but not changed: step(lr, clipping_of(parameters, 1).scale) is
  /// clip_gradients(parameters, 1) and step(lr) in one pass.
  void step(double lr, GradientScale scale = {});

  /// Everything that the next step depends on beside values, gradients and lr: "adamw.m.NAME", "adamw.v.NAME"
  /// of the parameter's shape, "adamw.step.NAME" (i64, rank 0) for each parameter. Copies.
  std::map<std::string, Array> state() const;
  /// Takes over what state() gave; changes nothing on error. Errors: an array is missing, unknown, or of
  /// another shape or type.
  void load_state(const std::map<std::string, Array>& state);

  /// How many steps have updated the parameter. Error: no such parameter.
  std::int64_t steps(std::string_view name) const;

 protected:
  /// `moments`: names of the arrays that the update keeps for each parameter, 0 at the start.
  Optimiser(ParameterBuffer& parameters, std::string name, std::vector<std::string> moments);

  /// A stretch of one parameter: flat offset and size; decay: whether weight decay applies; step from 1.
  struct Task {
    std::int64_t offset, size;
    bool decay;
    std::int64_t step;
    double lr;
    GradientScale scale;
  };
  /// Updates one stretch, on the caller's thread. moments[i] has the layout of the parameters.
  virtual void update(const Task& task, Array& values, const Array& gradients,
                      std::vector<Array>& moments) const = 0;

  const std::string& name() const { return name_; }

 private:
  template <class F>
  void for_each_array(const F& f) const;

  ParameterBuffer& parameters_;
  std::string name_;
  std::vector<std::string> moment_names_;
  std::vector<Array> moments_;
  std::vector<std::int64_t> steps_;
};

}  // namespace headlab
