#include "framework/train/verify.h"

#include <bit>

#include "framework/core/random.h"
#include "framework/data/copy.h"
#include "framework/data/induction.h"
#include "framework/data/roles.h"
#include "framework/train/trainer.h"

namespace headlab {

namespace {

std::uint64_t losses_of(const ModelBuilder& build, const Task& task, RunConfig config, std::int64_t steps,
                        std::uint64_t sum) {
  config.task = task.name();
  config.recipe.steps = steps;
  config.recipe.batch = 8;
  const std::unique_ptr<Model> model = build(config.needs);
  const TrainResult result = train(*model, task, config);
  for (const double loss : result.losses) sum = hash(sum, std::bit_cast<std::uint64_t>(loss));
  sum = hash(sum, std::bit_cast<std::uint64_t>(result.evaluation.loss));
  return hash(sum, std::bit_cast<std::uint64_t>(result.evaluation.accuracy));
}

RunConfig config_of(const Task& task) {
  RunConfig config;
  config.needs = task.needs();
  config.recipe = task.recipe();
  config.needs.heads = 4;
  config.seed = 1;
  return config;
}

}  // namespace

std::uint64_t verify_checksum(const ModelBuilder& build) {
  const RolesTask roles;
  RunConfig decoder = config_of(roles);
  decoder.needs.layers = 2;
  decoder.needs.mlp = 96;
  decoder.needs.dropout = 0.1;
  decoder.accumulation = 2;
  std::uint64_t sum = losses_of(build, roles, decoder, 200, 0);

  const CopyTask copy;
  sum = losses_of(build, copy, config_of(copy), 50, sum);

  const InductionTask induction;  // rotary
  return losses_of(build, induction, config_of(induction), 50, sum);
}

}  // namespace headlab
