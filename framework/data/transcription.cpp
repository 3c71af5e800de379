#include "framework/data/transcription.h"

#include <algorithm>

#include "framework/data/algorithm.h"
#include "framework/data/one_layer.h"

namespace headlab {

// Tables 2·19·64 + 2·17·64; encoder 4·64² + MLP 2·64·128 + 128 + 64 + norms 2·2·64; decoder 2·4·64² + the
// same MLP + norms 3·2·64; final norms 2·2·64; read-out (64 + 1)·19: 89 043.
Needs TranscriptionTask::needs() const {
  Needs needs = algorithm_needs(1, 128);
  needs.architecture = Architecture::encoder_decoder;
  needs.streams = {{"source", tokens, algorithm_embedding_std}, {"target", tokens, algorithm_embedding_std}};
  needs.readouts = {{"next", tokens}};
  needs.context = slots;
  needs.source_context = slots;
  return needs;
}

Recipe TranscriptionTask::recipe() const { return algorithm_recipe(32, 150); }

std::vector<HeadTarget> TranscriptionTask::head_targets() const {
  return {{"alignment", AttentionSite::cross, 0, HeadTarget::Kind::key}};
}

std::vector<Claim> TranscriptionTask::claims() const {
  const Least at = least();
  return {{.says = "whole sequences", .heads = {1, 4, 8}, .lower = .97},
          {.says = "whole sequences", .heads = {16}, .lower = at.whole_of_sixteen},
          {.says = "alignment, mean over heads",
           .measure = Measure::mean_relation,
           .heads = {1},
           .lower = at.aligned_of_one},
          {.says = "alignment, mean over heads",
           .measure = Measure::mean_relation,
           .heads = {4},
           .lower = at.aligned_of_four},
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

void TranscriptionTask::write(Batch& batch, std::int64_t row, Random& random) const {
  const std::int64_t length = shortest + random.below(longest - shortest + 1);
  std::int64_t* source = example_of(batch.inputs[0], row);
  std::int64_t* decoder = example_of(batch.inputs[1], row);
  std::int64_t* answers = example_of(batch.targets, row);
  std::int64_t* keys = example_of(batch.head_targets[0], row);
  std::uint8_t* valid = batch.source_valid.data<std::uint8_t>() + row * slots;

  std::fill_n(source, slots, pad);
  std::fill_n(decoder, slots, pad);
  std::fill_n(valid, slots, std::uint8_t{0});
  const std::int64_t begin = source_begin(length);
  for (std::int64_t i = 0; i < length; ++i) source[begin + i] = first_symbol + random.below(symbols);
  source[begin + length] = end;
  std::fill_n(valid + begin, length + 1, std::uint8_t{1});

  decoder[0] = start;
  for (std::int64_t i = 0; i < length; ++i) {
    keys[i] = begin + source_symbol(i, length);
    answers[i] = decoder[i + 1] = source[keys[i]];
  }
  answers[length] = end;
}

std::string TranscriptionTask::spell(std::size_t, std::int64_t id) const {
  if (id == pad) return "_";
  if (id == start) return "<";
  if (id == end) return ">";
  return letter(id - first_symbol);
}

}  // namespace headlab
