#include "framework/heads/example_map.h"

#include <algorithm>

#include "framework/core/check.h"

namespace headlab {

ExampleMap example_map(Model& model, const Task& task, std::uint64_t seed, HeadId head,
                       std::int64_t example) {
  HeadLayer& layer = layer_of(model, head);
  const std::int64_t size = task.held_out_size();
  check(example >= 0 && example < size, "example", "{} is not in 0 to {} of the held-out set", example,
        size - 1);
  const Batch batch = task.held_out(seed, example, 1);
  ExampleMap map;
  map.head = head;
  map.layer = layer.module().path();
  map.site = site_of(layer, model.needs());
  {
    const Looking looking(model);
    const std::string site = layer.sites.pattern.path();
    const ActivationCache seen(model, {site});
    model.logits(batch);
    check(seen.has(site), "example", "layer {} showed no pattern", map.layer);
    const Array& pattern = seen[site];
    map.weights = pattern.reshape({layer.heads(), pattern.dim(2), pattern.dim(3)})
                      .range(head.head, head.head + 1)
                      .reshape({pattern.dim(2), pattern.dim(3)})
                      .copy();
  }
  map.queries = task.labels(batch, 0, map.site == AttentionSite::encoder);
  map.keys = task.labels(batch, 0, map.site != AttentionSite::self);
  const std::vector<HeadTarget> targets = task.head_targets();
  for (std::size_t i = 0; i < targets.size(); ++i) {
    if (targets[i].site != map.site || targets[i].kind != HeadTarget::Kind::key) continue;
    const auto keys = batch.head_targets[i].values<std::int64_t>();
    map.targets.push_back({targets[i].name, {keys.begin(), keys.end()}});
  }
  return map;
}

}  // namespace headlab
