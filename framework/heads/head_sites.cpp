#include "framework/heads/head_sites.h"

#include <fmt/format.h>

#include "framework/core/check.h"

namespace headlab {

std::string HeadId::str() const { return fmt::format("{}.{}", layer, head); }

HeadLayer& layer_of(Model& model, HeadId id) {
  const std::vector<HeadLayer*> layers = head_layers(model);
  check(id.layer >= 0 && id.layer < static_cast<std::int64_t>(layers.size()), "head",
        "{} has no layer {}: the model has {} layers with heads", id.str(), id.layer, layers.size());
  HeadLayer& layer = *layers[static_cast<std::size_t>(id.layer)];
  check(id.head >= 0 && id.head < layer.heads(), "head", "{} does not exist: layer {} ({}) has {} heads",
        id.str(), id.layer, layer.module().path(), layer.heads());
  return layer;
}

std::vector<HeadId> all_heads(Model& model) {
  std::vector<HeadId> ids;
  std::int64_t index = 0;
  for (const HeadLayer* layer : head_layers(model)) {
    for (std::int64_t head = 0; head < layer->heads(); ++head) ids.push_back({index, head});
    ++index;
  }
  return ids;
}

AttentionSite site_of(HeadLayer& layer, const Needs& needs) {
  if (layer.cross()) return AttentionSite::cross;
  if (needs.architecture == Architecture::encoder_decoder) {
    for (const Module* module = &layer.module(); module; module = module->parent()) {
      if (module->name() == "encoder") return AttentionSite::encoder;
    }
  }
  return AttentionSite::self;
}

std::string name_of(AttentionSite site) {
  if (site == AttentionSite::cross) return "cross";
  return site == AttentionSite::encoder ? "encoder" : "self";
}

Mask mask_of(AttentionSite site, const Needs& needs, const Batch& batch) {
  if (site != AttentionSite::self) return batch.source_valid ? Mask::valid_keys(batch.source_valid) : Mask();
  const bool causal = needs.causal || needs.architecture == Architecture::encoder_decoder;
  const Mask mask = causal ? Mask::causal() : Mask();
  return batch.valid ? mask & Mask::valid_keys(batch.valid) : mask;
}

Array counted_queries(AttentionSite site, const Batch& batch) {
  if (site == AttentionSite::encoder) {
    return batch.source_valid ? batch.source_valid : Array::full(batch.inputs[0].shape(), 1, DType::u8);
  }
  const Shape& shape = batch.targets.shape();
  Array counted = Array::zeros({shape[0], shape[1]}, DType::u8);
  const std::int64_t* targets = batch.targets.data<std::int64_t>();
  std::uint8_t* flags = counted.data<std::uint8_t>();
  for (std::int64_t i = 0; i < batch.targets.size(); ++i) {
    if (targets[i] != unscored) flags[i / shape[2]] = 1;
  }
  return counted;
}

}  // namespace headlab
