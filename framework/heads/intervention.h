// Interventions: what stands in for the contexts of heads that are switched off, always before W_O.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "framework/heads/head_sites.h"
#include "framework/nn/hooks.h"

namespace headlab {

/// zero: z ← 0. mean: z ← its mean over the held-out set. resample: z ← that of another example, same
/// position. uniform: the head attends evenly, A ← 1/n_i. frozen: z ← 0, while every layer keeps the
/// attention of the intact run (pattern-preserving, Olsson et al. 2022): what is lost is what heads carry,
/// not where later heads then look.
enum class How : std::uint8_t { zero, mean, resample, uniform, frozen };

/// Who sees that a head is off. all: everybody. q, k, v: nobody but the queries, keys or values of the
/// layers, which are those of a run without the head, in an intact run. residual: everything but these, which
/// are those of the intact run. A head that later heads use to look somewhere else (K-composition) hurts
/// through k.
enum class Path : std::uint8_t { all, q, k, v, residual };

std::string name_of(How how);
std::string name_of(Path path);

/// Copies of an array below one another; itself for one.
Array repeated(const Array& x, std::int64_t times);

/// Which heads of a layer are off; one for each layer.
using LayerMask = std::vector<bool>;
using HeadMask = std::vector<LayerMask>;
/// Error: no such head.
HeadMask mask_of_heads(Model& model, std::span<const HeadId> heads);

/// Hooks and gates of one model while it lives; gates from before stay as they are for heads that are on. For
/// a model in evaluation mode, under NoGrad (see Looking). Errors: a layer whose gate is one per example; a
/// layer that does not show what has to be replaced (names it).
class Intervention {
 public:
  Intervention(Model& model, How how, Path path, std::uint64_t seed);
  ~Intervention();
  Intervention(const Intervention&) = delete;
  Intervention& operator=(const Intervention&) = delete;

  /// Whether means over the whole set are needed before anything else, and a batch of it.
  bool wants_means() const { return how_ == How::mean; }
  void add_to_means(const Batch& batch);
  /// Runs a batch intact where something of that is needed. All later calls are about this batch. Error:
  /// resample with fewer than two examples.
  void prepare(const Batch& batch, std::int64_t index);
  /// From then on a layer sees blocks.size() copies of the batch, copy i without the heads of *blocks[i].
  void set(std::size_t layer, const std::vector<const LayerMask*>& blocks);
  void set_all(const HeadMask& mask);
  void clear();
  /// Logits of the batch without these heads, in whole passes.
  Tensor logits(const HeadMask& mask);
  /// Whether a change begins where attention is made, and not after it.
  bool changes_patterns() const { return how_ == How::uniform; }
  /// Whether whole patterns are held, whose memory grows with the square of the context.
  bool holds_patterns() const { return how_ == How::uniform || how_ == How::frozen; }
  /// Whether a position can be changed without what is at others in the intact run.
  bool by_position() const { return path_ == Path::all && (how_ == How::zero || how_ == How::mean); }
  /// Whether one pass is enough.
  bool one_pass() const { return path_ == Path::all || path_ == Path::residual; }

 private:
  std::vector<std::string> captured() const;
  Tensor change_context(std::size_t layer, const Tensor& z) const;
  Tensor change_pattern(std::size_t layer, const Tensor& pattern) const;
  Tensor hold(const std::string& name, const Tensor& x) const;
  bool off_anywhere(std::size_t layer) const;

  Model& model_;
  How how_;
  Path path_;
  std::uint64_t seed_;
  std::vector<HeadLayer*> layers_;
  std::vector<std::string> z_names_, pattern_names_;
  std::vector<Tensor> gates_before_;
  std::vector<std::vector<const LayerMask*>> blocks_;
  Batch batch_;
  std::map<std::string, Array> intact_;    // of the batch, by site
  std::map<std::string, Array> held_;      // what q, k, v sites give instead
  std::vector<std::vector<double>> sums_;  // of z, [heads·size]
  std::vector<double> counts_;
  std::vector<std::int64_t> others_;  // whose z an example gets
  bool capturing_ = false;
  std::vector<std::unique_ptr<Hook>> hooks_;
};

}  // namespace headlab
