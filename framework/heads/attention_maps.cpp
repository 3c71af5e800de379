#include "framework/heads/attention_maps.h"

#include <algorithm>
#include <cmath>

#include "framework/core/check.h"
#include "framework/data/task.h"
#include "framework/nn/hooks.h"

namespace headlab {

namespace {

// Those of one example's pattern f32 [1, heads, n_q, n_k] that lie in its first positions.
Array shades(const Array& pattern, std::int64_t n_q, std::int64_t n_k) {
  const std::int64_t heads = pattern.dim(1), rows = pattern.dim(2), columns = pattern.dim(3);
  Array out({heads, n_q, n_k}, DType::u8);
  auto* to = out.data<std::uint8_t>();
  for (std::int64_t h = 0; h < heads; ++h) {
    for (std::int64_t i = 0; i < n_q; ++i) {
      const float* from = pattern.data<float>() + (h * rows + i) * columns;
      for (std::int64_t j = 0; j < n_k; ++j) {
        *to++ = static_cast<std::uint8_t>(std::lround(std::clamp(from[j], 0.0F, 1.0F) * 255.0F));
      }
    }
  }
  return out;
}

std::vector<std::string> first_of(std::vector<std::string> labels, std::int64_t positions) {
  if (static_cast<std::int64_t>(labels.size()) > positions)
    labels.resize(static_cast<std::size_t>(positions));
  return labels;
}

}  // namespace

std::vector<ExampleMaps> attention_maps(Model& model, const Task& task, std::uint64_t seed,
                                        const AttentionMapOptions& options) {
  check(options.examples >= 1, "attention_maps", "examples is {} (allowed: from 1)", options.examples);
  check(options.positions >= 1, "attention_maps", "positions is {} (allowed: from 1)", options.positions);
  const Looking looking(model);
  const std::vector<HeadLayer*> layers = head_layers(model);
  std::vector<std::string> sites;
  for (HeadLayer* layer : layers) sites.push_back(layer->sites.pattern.path());
  const std::int64_t examples = std::min(options.examples, task.held_out_size(HeldOut::score));
  std::vector<ExampleMaps> all;
  std::int64_t bytes = 0;
  for (std::int64_t index = 0; index < examples; ++index) {
    const Batch batch = task.held_out(seed, index, 1, HeldOut::score);
    const ActivationCache seen(model, sites);
    model.logits(batch);
    ExampleMaps maps;
    maps.example = task.held_out_size() - task.held_out_size(HeldOut::score) + index;
    std::int64_t size = 0;
    for (std::size_t l = 0; l < layers.size(); ++l) {
      if (!seen.has(sites[l])) continue;
      LayerMaps layer;
      layer.layer = layers[l]->module().path();
      layer.site = site_of(*layers[l], model.needs());
      layer.queries =
          first_of(task.labels(batch, 0, layer.site == AttentionSite::encoder), options.positions);
      layer.keys = first_of(task.labels(batch, 0, layer.site != AttentionSite::self), options.positions);
      layer.weights = shades(seen[sites[l]], static_cast<std::int64_t>(layer.queries.size()),
                             static_cast<std::int64_t>(layer.keys.size()));
      size += layer.weights.size();
      maps.layers.push_back(std::move(layer));
    }
    if (!all.empty() && bytes + size > options.bytes) break;
    bytes += size;
    all.push_back(std::move(maps));
  }
  return all;
}

}  // namespace headlab
