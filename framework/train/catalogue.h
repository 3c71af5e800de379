// Catalogue: which tasks, models and layers a program knows by name. headlab's own main fills one; a user's
// main may add to it.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "framework/data/task.h"
#include "framework/train/known_layer.h"
#include "framework/train/model.h"

namespace headlab {

using ModelBuilder = std::function<std::unique_ptr<Model>(const Needs&)>;

class Catalogue {
 public:
  /// Tasks are listed in the order in which they were added. Error: a name that is taken, empty, or looks
  /// like a path.
  Catalogue& add(std::shared_ptr<const Task> task);
  /// How a task's model is made from its needs (models/build.h has headlab's own).
  Catalogue& build_with(ModelBuilder builder);
  /// A layer for the conformance kit. Error: a name that is taken or empty.
  Catalogue& add(KnownLayer layer);

  const std::vector<std::shared_ptr<const Task>>& tasks() const { return tasks_; }
  const std::vector<KnownLayer>& layers() const { return layers_; }
  /// nullptr when there is none of that name.
  std::shared_ptr<const Task> find(std::string_view name) const;
  const KnownLayer* find_layer(std::string_view name) const;
  /// Error: no builder was given.
  std::unique_ptr<Model> build(const Needs& needs) const;

 private:
  std::vector<std::shared_ptr<const Task>> tasks_;
  std::vector<KnownLayer> layers_;
  ModelBuilder builder_;
};

}  // namespace headlab
