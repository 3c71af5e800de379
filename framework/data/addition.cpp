#include "framework/data/addition.h"

#include <algorithm>
#include <array>

#include "framework/data/algorithm.h"

namespace headlab {

Needs AdditionTask::needs() const {
  Needs needs = algorithm_needs(2, 256);
  needs.streams = {{"token", tokens, algorithm_embedding_std}};
  needs.readouts = {{"next", tokens}};
  needs.context = context;
  return needs;
}

Recipe AdditionTask::recipe() const { return algorithm_recipe(64, 800); }

std::vector<HeadTarget> AdditionTask::head_targets() const {
  return {{"a digit", AttentionSite::self, 0, HeadTarget::Kind::key},
          {"b digit", AttentionSite::self, 0, HeadTarget::Kind::key}};
}

bool AdditionTask::held_out_pair(std::int64_t a, std::int64_t b) {
  const auto pair = static_cast<std::uint32_t>(100 * a + b);
  return (pair * std::uint32_t{2654435761}) % 10 == 0;
}

void AdditionTask::write_sum(Batch& batch, std::int64_t row, Random& random, bool held_out) {
  std::int64_t a = 0;
  std::int64_t b = 0;
  do {
    a = random.below(100);
    b = random.below(100);
  } while (held_out_pair(a, b) != held_out);
  const std::array sum{(a + b) % 10, (a + b) / 10 % 10, (a + b) / 100};
  const std::array read{a / 10, a % 10, plus, b / 10, b % 10, equals, sum[0], sum[1]};
  std::copy(read.begin(), read.end(), example_of(batch.inputs[0], row));
  std::copy(sum.begin(), sum.end(), example_of(batch.targets, row) + first_scored);
  for (std::int64_t i = 0; i < 2; ++i) {
    example_of(batch.head_targets[0], row)[first_scored + i] = 1 - i;
    example_of(batch.head_targets[1], row)[first_scored + i] = 4 - i;
  }
}

std::vector<Claim> AdditionTask::claims() const {
  return {{.says = "whole sums", .heads = {4, 8, 16}, .lower = .85},
          {.says = "whole sums, less those of one head", .heads = {4}, .lower = .2, .minus = 1},
          {.says = "weight on the two digits that belong together",
           .measure = Measure::mass,
           .heads = {4, 8, 16},
           .lower = .85,
           .target = 0,
           .other = 1},
          {.says = "whole sums",
           .heads = {4, 8, 16},
           .lower = .97,
           .setting = {.name = "800 steps", .steps = 800}},
          {.says = "whole sums",
           .heads = {1},
           .lower = .97,
           .seeds = .4,
           .setting = {.name = "1200 steps", .steps = 1200}}};
}

void AdditionTask::write(Batch& batch, std::int64_t row, Random& random) const {
  write_sum(batch, row, random, false);
}

void AdditionTask::write_held_out(Batch& batch, std::int64_t row, std::uint64_t seed,
                                  std::int64_t index) const {
  Random random(seed, Stream::evaluation, static_cast<std::uint64_t>(index));
  write_sum(batch, row, random, true);
}

std::string AdditionTask::spell(std::size_t, std::int64_t id) const {
  if (id == plus) return "+";
  return id == equals ? "=" : std::to_string(id);
}

}  // namespace headlab
