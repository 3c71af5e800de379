// What the tests of this room share: patterns by hand, and a model whose heads do what they are told.
#pragma once

#include <algorithm>
#include <utility>
#include <vector>

#include "framework/heads/head_sites.h"

namespace headlab {

/// A pattern f32 [1, 1, n_q, n_k] from its rows.
inline Array one_head(const std::vector<std::vector<float>>& rows) {
  std::vector<float> numbers;
  for (const auto& row : rows) numbers.insert(numbers.end(), row.begin(), row.end());
  const auto n_q = static_cast<std::int64_t>(rows.size());
  return Array::of<float>({1, 1, n_q, static_cast<std::int64_t>(rows[0].size())}, numbers);
}

/// One-hot patterns [1, 1, T, T]: query i attends to keys[i].
inline Array one_hot(const std::vector<std::int64_t>& keys) {
  const auto n = static_cast<std::int64_t>(keys.size());
  Array pattern = Array::zeros({1, 1, n, n});
  for (std::int64_t i = 0; i < n; ++i) {
    pattern.data<float>()[i * n + keys[static_cast<std::size_t>(i)]] = 1;
  }
  return pattern;
}

/// One job of a planted head: attend to the key at this offset (or evenly to all), copy the token there to a
/// read-out.
struct PlantedHead {
  std::int64_t offset = 0;
  std::size_t readout = 0;
  bool even = false;
};

class PlantedLayer : public Module, public HeadLayer {
 public:
  explicit PlantedLayer(std::vector<PlantedHead> jobs) : HeadLayer(this), jobs_(std::move(jobs)) {}
  std::int64_t heads() const override { return static_cast<std::int64_t>(jobs_.size()); }
  std::int64_t head_size() const override { return 1; }
  Module& module() override { return *this; }
  bool cross() const override { return false; }

  bool shows_pattern = true, gives_telemetry = true;

  /// Shows the pattern and adds each head's gate to the logit of the class that it copies.
  void run(const Batch& batch, const Needs& needs, Array& logits) {
    const std::int64_t size = batch.size();
    const std::int64_t length = batch.inputs.back().dim(1);
    Array pattern = Array::zeros({size, heads(), length, length});
    for (std::int64_t b = 0; b < size; ++b) {
      const std::int64_t* tokens = example_of(batch.inputs.back(), b);
      for (std::int64_t h = 0; h < heads(); ++h) {
        const PlantedHead& job = jobs_[static_cast<std::size_t>(h)];
        std::int64_t from = 0;
        for (std::size_t r = 0; r < job.readout; ++r) from += needs.readouts[r].classes;
        for (std::int64_t t = 0; t < length; ++t) {
          float* row = pattern.data<float>() + ((b * heads() + h) * length + t) * length;
          const std::int64_t key = std::max<std::int64_t>(t + job.offset, 0);
          if (job.even) {
            std::fill_n(row, t + 1, 1 / static_cast<float>(t + 1));
          } else {
            row[key] = 1;
          }
          const double open = gate() ? gate().value().at(h) : 1;
          logits.data<float>()[(b * length + t) * needs.logits() + from + tokens[key]] +=
              static_cast<float>(open);
        }
      }
    }
    const Tensor seen = shows_pattern ? sites.pattern(Tensor(pattern)) : Tensor(pattern);
    if (telemetry_options() && gives_telemetry) {
      set_telemetry(telemetry_of(seen.value(), Mask::causal(), *telemetry_options()));
    }
  }

 private:
  std::vector<PlantedHead> jobs_;
};

class PlantedModel : public Model {
 public:
  PlantedModel(Needs needs, std::vector<PlantedHead> jobs)
      : Model(std::move(needs)), attn(this, "attn", std::move(jobs)) {}
  Tensor logits(const Batch& batch) override {
    modes.push_back(training());
    batches.push_back(batch.size());
    Array logits = Array::zeros({batch.size(), batch.inputs.back().dim(1), needs().logits()});
    attn->run(batch, needs(), logits);
    return Tensor(logits);
  }
  Child<PlantedLayer> attn;
  std::vector<bool> modes;            ///< training mode at each call
  std::vector<std::int64_t> batches;  ///< examples of each call
};

}  // namespace headlab
