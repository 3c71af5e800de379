#include "framework/heads/prune.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "framework/core/check.h"

namespace headlab {

namespace {

struct Group {
  HeadList heads;
  double value = 0;
};

std::vector<Group> groups_of(Model& model, const std::vector<double>& values) {
  std::vector<Group> groups;
  std::size_t at = 0;
  std::int64_t index = 0;
  for (const HeadLayer* layer : head_layers(model)) {
    for (std::int64_t head = 0; head < layer->heads(); ++head, ++at) {
      if (head % layer->heads_together() == 0) groups.emplace_back();
      groups.back().heads.push_back({index, head});
      groups.back().value += values[at];
    }
    ++index;
  }
  return groups;
}

// The gates of each layer, those that it has included.
std::vector<std::vector<double>> gates_by_layer(Model& model, const std::vector<double>& gates,
                                                std::string_view where) {
  check(gates.size() == all_heads(model).size(), where, "{} gates for {} heads", gates.size(),
        all_heads(model).size());
  std::vector<std::vector<double>> by_layer;
  std::size_t at = 0;
  for (const HeadLayer* layer : head_layers(model)) {
    check(!layer->gate() || layer->gate().rank() == 1, where, "a gate of shape {} is in the way, needs [{}]",
          layer->gate() ? layer->gate().shape() : Shape{}, layer->heads());
    std::vector<double> own;
    for (std::int64_t head = 0; head < layer->heads(); ++head, ++at) {
      own.push_back(gates[at] * (layer->gate() ? layer->gate().value().at(head) : 1));
    }
    by_layer.push_back(std::move(own));
  }
  return by_layer;
}

}  // namespace

HeadList most_important(Model& model, const std::vector<double>& values, double share) {
  const std::size_t heads = all_heads(model).size();
  check(share > 0 && share <= 1, "prune", "a share of {} heads, allowed: above 0, up to 1", share);
  check(values.size() == heads, "prune", "{} values for {} heads", values.size(), heads);
  std::vector<Group> groups = groups_of(model, values);
  std::stable_sort(groups.begin(), groups.end(),
                   [](const Group& a, const Group& b) { return a.value > b.value; });
  // 0.6 · 5 is 3, although a double says a little more.
  const auto wanted =
      static_cast<std::size_t>(std::max(1.0, std::ceil(share * static_cast<double>(heads) - 1e-9)));
  HeadList kept;
  for (const Group& group : groups) {
    if (kept.size() >= wanted) break;
    kept.insert(kept.end(), group.heads.begin(), group.heads.end());
  }
  std::sort(kept.begin(), kept.end(),
            [](HeadId a, HeadId b) { return a.layer != b.layer ? a.layer < b.layer : a.head < b.head; });
  return kept;
}

PrunedModel pruned(Model& model, const HeadList& kept, const std::vector<double>& gates) {
  const HeadMask stays = mask_of_heads(model, kept);
  const std::vector<std::vector<double>> scales = gates_by_layer(model, gates, "prune");
  PrunedModel result{model.needs(), model.state()};
  if (result.needs.head_size == 0 && result.needs.heads > 0) {
    result.needs.head_size = result.needs.d_model / result.needs.heads;
  }
  result.needs.layer_heads.clear();
  const std::vector<HeadLayer*> layers = head_layers(model);
  for (std::size_t i = 0; i < layers.size(); ++i) {
    std::vector<std::int64_t> heads;
    std::vector<double> own;
    for (std::size_t h = 0; h < stays[i].size(); ++h) {
      if (!stays[i][h]) continue;
      heads.push_back(static_cast<std::int64_t>(h));
      own.push_back(scales[i][h]);
    }
    result.needs.layer_heads.push_back(std::ssize(heads));
    const std::string path = layers[i]->module().path();
    const std::string prefix = path.empty() ? "" : path + ".";
    for (const NamedParameter& named : layers[i]->module().parameters())
      result.state.erase(prefix + named.path);
    for (auto& entry : layers[i]->state_of_heads(heads, own))
      result.state[prefix + entry.first] = entry.second;
  }
  return result;
}

HeadGates::HeadGates(Model& model, const std::vector<double>& gates) {
  const std::vector<std::vector<double>> by_layer = gates_by_layer(model, gates, "gates");
  const std::vector<HeadLayer*> layers = head_layers(model);
  for (std::size_t i = 0; i < layers.size(); ++i) {
    Array gate({std::ssize(by_layer[i])});
    for (std::size_t h = 0; h < by_layer[i].size(); ++h)
      gate.data<float>()[h] = static_cast<float>(by_layer[i][h]);
    scopes_.push_back(std::make_unique<GateScope>(*layers[i], Tensor(gate)));
  }
}

}  // namespace headlab
