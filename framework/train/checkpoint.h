// Checkpoints: one safetensors file that holds everything a training needs to go on, or weights alone.
//
//   blocks.0.attn.qkv.weight, …      the parameters, by path
//   optimiser/<name>                 the optimiser's moments and counters; absent in a snapshot
//   metadata                         format, format_version, numbers_version, config (JSON), step, best_loss,
//                                    best_step, vocabulary (JSON) and vocabulary_unit, rotary_pairing
//
// All random numbers are functions of the seed (in config) and the step, so these two are the random state,
// the data position and the place in the learning-rate schedule.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <vector>

#include "framework/data/text_vocabulary.h"
#include "framework/files/safetensors.h"
#include "framework/train/run_config.h"

namespace headlab {

struct Checkpoint {
  RunConfig config;
  std::optional<TextVocabulary> vocabulary;  ///< of a task over text
  std::int64_t step = 0;                     ///< steps done
  std::optional<double> best_loss;           ///< the lowest validation loss so far
  std::int64_t best_step = 0;                ///< where it was
  NamedArrays parameters;
  NamedArrays optimiser;
};

/// Replaces or creates the file atomically. Errors: a number that is not finite (names the array; the file
/// that was there stays), and those of write_safetensors().
void save_checkpoint(const std::filesystem::path& path, const Checkpoint& checkpoint);

/// All or nothing. Errors: those of read_safetensors(); not a checkpoint of headlab; written in a newer
/// format; metadata missing or wrong (named).
Checkpoint load_checkpoint(const std::filesystem::path& path);

/// At most 20 steps from 0 to `steps`, both included, closer together at the start: 0 and 1 …  `steps` in
/// equal ratios.
std::vector<std::int64_t> snapshot_steps(std::int64_t steps);

}  // namespace headlab
