// What a task hands to training and measuring: token ids, answers, and where a head should look.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "framework/core/array.h"

namespace headlab {

/// A target or head target that does not count at this position.
constexpr std::int64_t unscored = -1;

/// B examples. An absent Array is one that the task's architecture does not have.
struct Batch {
  /// i64, one per stream of Needs: [B, T] each; encoder–decoder: {source [B, S], decoder input [B, T]}. With
  /// patches: one f32 [B, patches, patch_width].
  std::vector<Array> inputs;
  /// u8 [B, T], 1 where a position of a decoder is real: keys that its self attention may attend to. Absent:
  /// all.
  Array valid;
  /// u8 [B, S], 1 where a source position is real: keys that encoder and cross attention may attend to.
  Array source_valid;
  /// i64 [B, T, R] for R read-outs: a class, or `unscored`.
  Array targets;
  /// One i64 [B, n_q] per head target of the task, n_q being the queries of its site: the key's position, or
  /// `unscored`. Of a `uniform` target: 0 where the query counts.
  std::vector<Array> head_targets;

  /// One i64 [B, T] per probe of the task: the right answer, or `unscored`.
  std::vector<Array> probes;

  /// B.
  std::int64_t size() const { return targets ? targets.dim(0) : 0; }
};

/// The numbers of one example (index along the leading axis) of an i64 array.
inline std::int64_t* example_of(Array& array, std::int64_t example) {
  return array.data<std::int64_t>() + example * array.shape().product(1, array.rank());
}
inline const std::int64_t* example_of(const Array& array, std::int64_t example) {
  return array.data<std::int64_t>() + example * array.shape().product(1, array.rank());
}

/// Which attention a head target is about: self attention of the one stack or of the decoder, self attention
/// of the encoder, or cross attention. Any layer counts.
enum class AttentionSite { self, encoder, cross };

/// Something a head may specialise in. key: the mass on one key per query; uniform: even attention, measured
/// by normalised entropy.
struct HeadTarget {
  enum class Kind { key, uniform };
  std::string name;
  AttentionSite site = AttentionSite::self;
  /// The read-out that it serves (index into Needs::readouts), or −1.
  int readout = -1;
  Kind kind = Kind::key;
};

/// A question to the logits of a read-out that training does not ask: which of some classes has the largest
/// logit, and which answer does that class stand for? ("were": plural, past.)
struct Probe {
  std::string name;
  int readout = 0;
  std::vector<std::int64_t> classes;
  std::vector<std::int64_t> answers;  ///< of each of them, from 0 on
};

}  // namespace headlab
