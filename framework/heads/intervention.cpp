#include "framework/heads/intervention.h"

#include <algorithm>
#include <cstring>

#include "framework/core/check.h"
#include "framework/core/random.h"

namespace headlab {

namespace {

constexpr const char* how_names[] = {"zero", "mean", "resample", "uniform", "frozen"};
constexpr const char* path_names[] = {"all", "q", "k", "v", "residual"};

constexpr const char* where = "knock-out";

}  // namespace

Array repeated(const Array& x, std::int64_t times) {
  if (times == 1) return x;
  Array copies(x.shape().with(0, x.dim(0) * times), x.dtype());
  const auto bytes = static_cast<std::size_t>(x.bytes());
  for (std::int64_t i = 0; i < times; ++i) {
    std::memcpy(static_cast<char*>(copies.raw()) + static_cast<std::size_t>(i) * bytes, x.raw(), bytes);
  }
  return copies;
}

std::string name_of(How how) { return how_names[static_cast<std::size_t>(how)]; }
std::string name_of(Path path) { return path_names[static_cast<std::size_t>(path)]; }

HeadMask mask_of_heads(Model& model, std::span<const HeadId> heads) {
  HeadMask mask;
  for (const HeadLayer* layer : head_layers(model)) mask.emplace_back(layer->heads());
  for (const HeadId id : heads) {
    layer_of(model, id);
    mask[static_cast<std::size_t>(id.layer)][static_cast<std::size_t>(id.head)] = true;
  }
  return mask;
}

Intervention::Intervention(Model& model, How how, Path path, std::uint64_t seed)
    : model_(model), how_(how), path_(path), seed_(seed), layers_(head_layers(model)) {
  check(one_pass() || how == How::zero || how == How::mean || how == How::resample, where,
        "through {} alone a head can be off as zero, mean or resample, not {}", name_of(path), name_of(how));
  for (HeadLayer* layer : layers_) {
    z_names_.push_back(layer->sites.z.path());
    pattern_names_.push_back(layer->sites.pattern.path());
    gates_before_.push_back(layer->gate());
    check(!layer->gate() || layer->gate().rank() == 1, where, "a gate of shape {} is in the way, needs [{}]",
          layer->gate() ? layer->gate().shape() : Shape{}, layer->heads());
  }
  blocks_.resize(layers_.size());
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    const HeadSites& sites = layers_[i]->sites;
    if (how_ == How::mean || how_ == How::resample) {
      hooks_.push_back(std::make_unique<Hook>(
          model, z_names_[i], [this, i](const HookSite&, const Tensor& z) { return change_context(i, z); }));
    }
    if (how_ == How::uniform || how_ == How::frozen) {
      hooks_.push_back(std::make_unique<Hook>(
          model, pattern_names_[i],
          [this, i](const HookSite&, const Tensor& pattern) { return change_pattern(i, pattern); }));
    }
    if (path_ == Path::all) continue;
    for (const HookPoint* site : {&sites.q, &sites.k, &sites.v}) {
      hooks_.push_back(std::make_unique<Hook>(
          model, site->path(),
          [this, name = site->path()](const HookSite&, const Tensor& x) { return hold(name, x); }));
    }
  }
}

Intervention::~Intervention() { clear(); }

// The sites of a layer whose intact values are needed.
std::vector<std::string> Intervention::captured() const {
  std::vector<std::string> names;
  if (how_ == How::resample) names = z_names_;
  if (holds_patterns()) names = pattern_names_;
  if (path_ == Path::residual) {
    for (const HeadLayer* layer : layers_) {
      for (const HookPoint* site : {&layer->sites.q, &layer->sites.k, &layer->sites.v})
        names.push_back(site->path());
    }
  }
  return names;
}

void Intervention::add_to_means(const Batch& batch) {
  sums_.resize(layers_.size());
  counts_.resize(layers_.size());
  capturing_ = true;
  const ActivationCache seen(model_, z_names_);
  model_.logits(batch);
  capturing_ = false;
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    check(seen.has(z_names_[i]), where, "layer {} does not show z, which the mean is of",
          layers_[i]->module().path());
    const Array& z = seen[z_names_[i]];
    const Array counted = counted_queries(site_of(*layers_[i], model_.needs()), batch);
    const std::int64_t width = z.dim(2);
    sums_[i].resize(static_cast<std::size_t>(width));
    for (std::int64_t row = 0; row < counted.size(); ++row) {
      if (counted.data<std::uint8_t>()[row] == 0) continue;
      counts_[i] += 1;
      const float* from = z.data<float>() + row * width;
      for (std::int64_t c = 0; c < width; ++c)
        sums_[i][static_cast<std::size_t>(c)] += static_cast<double>(from[c]);
    }
  }
}

void Intervention::prepare(const Batch& batch, std::int64_t index) {
  clear();
  batch_ = batch;
  held_.clear();
  if (how_ == How::resample) {
    const std::int64_t size = batch.size();
    check(size >= 2, where, "resample takes z from another example, and there is {}", size);
    const std::vector<std::int64_t> order =
        Random(seed_, Stream::evaluation, hash(hash("resample"), static_cast<std::uint64_t>(index)))
            .permutation(size);
    others_.resize(order.size());
    for (std::size_t i = 0; i < order.size(); ++i) {
      others_[static_cast<std::size_t>(order[i])] = order[(i + 1) % order.size()];
    }
  }
  const std::vector<std::string> names = captured();
  // The pattern of a uniform head is not used: once is enough to know that there is one.
  if (names.empty() || (how_ == How::uniform && path_ == Path::all && index > 0)) return;
  capturing_ = true;
  const ActivationCache seen(model_, names);
  model_.logits(batch);
  capturing_ = false;
  for (const std::string& name : names) {
    check(seen.has(name), where, "the model does not show {}, which has to be replaced", name);
  }
  intact_ = seen.values();
  if (path_ == Path::residual) held_ = intact_;
}

void Intervention::set(std::size_t layer, const std::vector<const LayerMask*>& blocks) {
  blocks_[layer] = blocks;
  if (how_ != How::zero && how_ != How::frozen) return;
  HeadLayer& target = *layers_[layer];
  if (!off_anywhere(layer)) {
    target.set_gate(gates_before_[layer]);
    return;
  }
  const std::int64_t heads = target.heads();
  const auto copies = static_cast<std::int64_t>(blocks.size());
  // One row is enough for one copy, and all that a layer of somebody's own may know.
  const std::int64_t rows = copies == 1 ? 1 : batch_.size();
  Array gate({copies * rows, heads});
  float* row = gate.data<float>();
  for (std::int64_t i = 0; i < copies * rows; ++i, row += heads) {
    const LayerMask& off = *blocks[static_cast<std::size_t>(i / rows)];
    for (std::int64_t h = 0; h < heads; ++h) {
      const double before = gates_before_[layer] ? gates_before_[layer].value().at(h) : 1;
      row[h] = off[static_cast<std::size_t>(h)] ? 0.0F : static_cast<float>(before);
    }
  }
  target.set_gate(Tensor(copies == 1 ? gate.reshape({heads}) : gate));
}

void Intervention::set_all(const HeadMask& mask) {
  for (std::size_t i = 0; i < mask.size(); ++i) set(i, {&mask[i]});
}

void Intervention::clear() {
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    blocks_[i].clear();
    layers_[i]->set_gate(gates_before_[i]);
  }
}

bool Intervention::off_anywhere(std::size_t layer) const {
  return std::any_of(blocks_[layer].begin(), blocks_[layer].end(), [](const LayerMask* mask) {
    return std::find(mask->begin(), mask->end(), true) != mask->end();
  });
}

Tensor Intervention::logits(const HeadMask& mask) {
  if (one_pass()) {
    set_all(mask);
    Tensor logits = model_.logits(batch_);
    clear();
    return logits;
  }
  std::vector<std::string> names;
  for (const HeadLayer* layer : layers_) {
    const HeadSites& sites = layer->sites;
    names.push_back((path_ == Path::q ? sites.q : path_ == Path::k ? sites.k : sites.v).path());
  }
  {
    const ActivationCache seen(model_, names);
    set_all(mask);
    model_.logits(batch_);
    clear();
    for (const std::string& name : names) {
      check(seen.has(name), where, "the model does not show {}, which has to be replaced", name);
    }
    held_ = seen.values();
  }
  Tensor logits = model_.logits(batch_);
  held_.clear();
  return logits;
}

Tensor Intervention::hold(const std::string& name, const Tensor& x) const {
  const auto found = held_.find(name);
  if (capturing_ || found == held_.end()) return x;
  return Tensor(repeated(found->second, x.dim(0) / found->second.dim(0)));
}

Tensor Intervention::change_context(std::size_t layer, const Tensor& z) const {
  if (capturing_ || !off_anywhere(layer)) return z;
  Array changed = z.value().copy();
  const std::int64_t size = layers_[layer]->head_size();
  const std::int64_t examples = batch_.size();
  const std::int64_t queries = z.dim(1);
  const std::int64_t width = z.dim(2);
  std::vector<float> means(static_cast<std::size_t>(width));
  if (how_ == How::mean) {
    for (std::size_t c = 0; c < means.size(); ++c) {
      means[c] = static_cast<float>(counts_[layer] > 0 ? sums_[layer][c] / counts_[layer] : 0);
    }
  }
  for (std::size_t block = 0; block < blocks_[layer].size(); ++block) {
    const LayerMask& off = *blocks_[layer][block];
    for (std::size_t h = 0; h < off.size(); ++h) {
      if (!off[h]) continue;
      const std::int64_t column = static_cast<std::int64_t>(h) * size;
      for (std::int64_t b = 0; b < examples; ++b) {
        float* to = changed.data<float>() +
                    (static_cast<std::int64_t>(block) * examples + b) * queries * width + column;
        const float* from = means.data() + column;
        std::int64_t step = 0;
        if (how_ == How::resample) {
          from = intact_.at(z_names_[layer]).data<float>() +
                 others_[static_cast<std::size_t>(b)] * queries * width + column;
          step = width;
        }
        for (std::int64_t i = 0; i < queries; ++i) std::copy_n(from + i * step, size, to + i * width);
      }
    }
  }
  return Tensor(changed);
}

Tensor Intervention::change_pattern(std::size_t layer, const Tensor& pattern) const {
  if (capturing_) return pattern;
  const std::int64_t examples = batch_.size();
  if (how_ == How::frozen) {
    const Array& intact = intact_.at(pattern_names_[layer]);
    return Tensor(repeated(intact, pattern.dim(0) / examples));
  }
  if (!off_anywhere(layer)) return pattern;
  Array changed = pattern.value().copy();  // [copies·B, heads, n_q, n_k]
  const std::int64_t n_q = pattern.dim(2);
  const std::int64_t n_k = pattern.dim(3);
  const Mask mask = mask_of(site_of(*layers_[layer], model_.needs()), model_.needs(), batch_);
  const ResolvedMask resolved(mask, examples, 1, n_q, n_k, "knock-out");
  for (std::size_t block = 0; block < blocks_[layer].size(); ++block) {
    const LayerMask& off = *blocks_[layer][block];
    for (std::int64_t b = 0; b < examples; ++b) {
      for (std::size_t h = 0; h < off.size(); ++h) {
        if (!off[h]) continue;
        const std::int64_t example = static_cast<std::int64_t>(block) * examples + b;
        float* weights =
            changed.data<float>() +
            (example * static_cast<std::int64_t>(off.size()) + static_cast<std::int64_t>(h)) * n_q * n_k;
        for (std::int64_t i = 0; i < n_q; ++i, weights += n_k) {
          const ResolvedMask::Row row = resolved.row(b, 0, i);
          const std::int64_t allowed = resolved.allowed_keys(b, 0, i);
          for (std::int64_t key = 0; key < n_k; ++key) {
            weights[key] = row.allows(key) ? 1 / static_cast<float>(allowed) : 0;
          }
        }
      }
    }
  }
  return Tensor(changed);
}

}  // namespace headlab
