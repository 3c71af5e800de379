#include "framework/train/catalogue.h"

#include "framework/core/check.h"

namespace headlab {

Catalogue& Catalogue::add(std::shared_ptr<const Task> task) {
  check(task != nullptr, "catalogue", "there is no task");
  const std::string name = task->name();
  check(!name.empty(), "catalogue", "a task has an empty name");
  check(name.find_first_of("/\\.") == std::string::npos, "catalogue",
        "the task's name '{}' looks like a path: it must hold no '/', '\\' or '.'", name);
  check(find(name) == nullptr, "catalogue", "two tasks are named '{}'", name);
  tasks_.push_back(std::move(task));
  return *this;
}

Catalogue& Catalogue::build_with(ModelBuilder builder) {
  builder_ = std::move(builder);
  return *this;
}

Catalogue& Catalogue::add(KnownLayer layer) {
  check(!layer.name.empty(), "catalogue", "a layer has an empty name");
  check(find_layer(layer.name) == nullptr, "catalogue", "two layers are named '{}'", layer.name);
  layers_.push_back(std::move(layer));
  return *this;
}

const KnownLayer* Catalogue::find_layer(std::string_view name) const {
  for (const KnownLayer& layer : layers_) {
    if (layer.name == name) return &layer;
  }
  return nullptr;
}

std::shared_ptr<const Task> Catalogue::find(std::string_view name) const {
  for (const auto& task : tasks_) {
    if (task->name() == name) return task;
  }
  return nullptr;
}

std::unique_ptr<Model> Catalogue::build(const Needs& needs) const {
  check(static_cast<bool>(builder_), "catalogue", "nobody said how models are built: call build_with()");
  return builder_(needs);
}

}  // namespace headlab
