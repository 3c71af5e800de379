#include "framework/data/roles.h"

#include "framework/data/one_layer.h"

namespace headlab {

// 12·64 letters + 8·64 payloads + 24·64 positions + 4·64² attention + 2·2·64 norms + (64 + 1)·4·8 read-outs
// = 21 536.
Needs RolesTask::needs() const {
  Needs needs = one_layer_needs(context, 1);
  needs.streams = {{"letter", letters, one_layer_embedding_std()},
                   {"payload", payloads, one_layer_embedding_std()}};
  for (const HeadTarget& target : head_targets()) needs.readouts.push_back({target.name, payloads});
  return needs;
}

Recipe RolesTask::recipe() const { return one_layer_recipe(500); }

std::vector<HeadTarget> RolesTask::head_targets() const {
  return {{"prev", AttentionSite::self, prev, HeadTarget::Kind::key},
          {"first", AttentionSite::self, first, HeadTarget::Kind::key},
          {"succ", AttentionSite::self, succ, HeadTarget::Kind::key},
          {"maj", AttentionSite::self, maj, HeadTarget::Kind::uniform}};
}

std::vector<Rung> RolesTask::ladder() const {
  return {{1, 0.601}, {2, 0.857}, {4, 1.0}, {8, 1.0}, {16, 1.0}};
}

std::vector<Claim> RolesTask::claims() const {
  return {{.says = "accuracy", .heads = {1}, .lower = .45, .upper = .85},
          {.says = "accuracy", .heads = {2}, .lower = .78, .upper = .92},
          {.says = "accuracy", .heads = {4, 8, 16}, .lower = .97},
          {.says = "heads that the four roles are on",
           .measure = Measure::distinct_owners,
           .heads = {4},
           .lower = 4,
           .seeds = .8},
          {.says = "another role's loss without a role's head",
           .measure = Measure::off_job_lost,
           .heads = {4},
           .upper = .05}};
}

void RolesTask::write(Batch& batch, std::int64_t row, Random& random) const {
  std::int64_t* x = example_of(batch.inputs[0], row);
  std::int64_t* y = example_of(batch.inputs[1], row);
  for (std::int64_t t = 0; t < context; ++t) {
    x[t] = random.below(letters);
    y[t] = random.below(payloads);
  }
  std::int64_t* answers = example_of(batch.targets, row);
  const auto keys = [&](Role role) {
    return example_of(batch.head_targets[static_cast<std::size_t>(role)], row);
  };
  std::int64_t low_minus_high = 0;
  for (std::int64_t t = 0; t < context; ++t) {
    low_minus_high += x[t] < letters / 2 ? 1 : -1;
    if (t < first_scored) continue;
    keys(prev)[t] = t - 1;
    keys(first)[t] = 0;
    for (std::int64_t j = t - 1; j >= 0 && keys(succ)[t] == unscored; --j) {
      if (x[j] == (x[t] + 1) % letters) keys(succ)[t] = j;
    }
    for (const Role role : {prev, first, succ}) {
      const std::int64_t key = keys(role)[t];
      if (key != unscored) answers[t * roles + role] = y[key];
    }
    if (low_minus_high != 0) {
      keys(maj)[t] = 0;
      answers[t * roles + maj] = low_minus_high > 0 ? 1 : 0;
    }
  }
}

std::string RolesTask::spell(std::size_t stream, std::int64_t id) const {
  return stream == 0 ? letter(id) : std::to_string(id);
}

}  // namespace headlab
