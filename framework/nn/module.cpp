#include "framework/nn/module.h"

#include <cstring>

namespace headlab {

std::string Module::path() const {
  if (!parent_) return {};
  const std::string above = parent_->path();
  return above.empty() ? name_ : above + "." + name_;
}

std::string Module::path_from(const Module& above) const {
  if (this == &above) return {};
  check(parent_ != nullptr, "module", "'{}' is not inside the module that its path was asked from", name_);
  const std::string rest = parent_->path_from(above);
  return rest.empty() ? name_ : rest + "." + name_;
}

void Module::attach(Module* parent, std::string name) {
  check(parent != nullptr && parent_ == nullptr, "module", "'{}' needs one parent and has one for good",
        name);
  for (const Module* sibling : parent->children_) {
    check(sibling->name_ != name, "module", "two children are named '{}'", name);
  }
  parent_ = parent;
  name_ = std::move(name);
  parent->children_.push_back(this);
}

void Module::visit(const std::function<void(Module&)>& f) {
  f(*this);
  for (Module* child : children_) child->visit(f);
}

std::vector<NamedParameter> Module::parameters() {
  std::vector<NamedParameter> all;
  visit([&](Module& module) {
    // Seen from the module that was asked, so that a part can be saved and loaded by itself.
    std::string prefix = module.path_from(*this);
    if (!prefix.empty()) prefix += '.';
    for (Parameter* parameter : module.own_parameters_)
      all.push_back({prefix + parameter->name(), parameter});
  });
  return all;
}

std::int64_t Module::parameter_count() {
  std::int64_t count = 0;
  for (const NamedParameter& named : parameters()) count += named.parameter->tensor().size();
  return count;
}

void Module::train(bool on) {
  visit([on](Module& module) { module.training_ = on; });
}

void Module::freeze(bool frozen) {
  for (const NamedParameter& named : parameters()) named.parameter->tensor().set_requires_grad(!frozen);
}

std::map<std::string, Array> Module::state() {
  std::map<std::string, Array> state;
  for (const NamedParameter& named : parameters())
    state[named.path] = named.parameter->tensor().value().copy();
  return state;
}

void Module::load_state(const std::map<std::string, Array>& state) {
  const std::vector<NamedParameter> all = parameters();
  std::map<std::string, bool> known;
  for (const NamedParameter& named : all) {
    known[named.path] = true;
    const auto found = state.find(named.path);
    check(found != state.end(), "load_state", "'{}' is missing", named.path);
    const Tensor& tensor = named.parameter->tensor();
    check(found->second.shape() == tensor.shape(), "load_state", "'{}' has shape {}, the model needs {}",
          named.path, found->second.shape(), tensor.shape());
  }
  for (const auto& entry : state)
    check(known.count(entry.first) == 1, "load_state", "the model has no '{}'", entry.first);
  for (const NamedParameter& named : all) {
    Array& value = named.parameter->tensor().change();
    const Array source = state.at(named.path).to(value.dtype());
    std::memcpy(value.raw(), source.raw(), static_cast<std::size_t>(value.bytes()));
  }
}

void initialise(Module& model, std::uint64_t seed) {
  for (const NamedParameter& named : model.parameters()) {
    const std::size_t own = named.parameter->name().size();
    const std::size_t cut = named.path.size() > own ? named.path.size() - own - 1 : 0;
    named.parameter->initialise(seed, named.path.substr(0, cut));
  }
}

}  // namespace headlab
