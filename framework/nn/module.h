// Module: a tree of named parts with named parameters. Names are given in the line that declares a member:
//
//   class FeedForward : public Module {
//    public:
//     explicit FeedForward(const Options& o) : up(this, "up", …), down(this, "down", …) {}
//     Tensor operator()(const Tensor& x) { return down(gelu(up(x))); }
//     Child<Linear> up, down;
//   };
//
// Modules are neither copied nor moved: parents, parameter buffers and hooks hold on to their addresses.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "framework/core/profile.h"
#include "framework/nn/parameter.h"

namespace headlab {

/// A parameter with its full name, "blocks.0.attn.qkv.weight".
struct NamedParameter {
  std::string path;
  Parameter* parameter;
};

class HookPoint;
struct NamedHookPoint;

class Module {
 public:
  Module() = default;
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;
  virtual ~Module() = default;

  /// "" for the root, else "blocks.0.attn".
  std::string path() const;
  /// Seen from a module above: "" for that module itself. Error: `above` is not above.
  std::string path_from(const Module& above) const;
  Module* parent() const { return parent_; }
  const std::string& name() const { return name_; }

  /// Visits this module and all below it, parents first, in the order of declaration.
  void visit(const std::function<void(Module&)>& f);
  /// All parameters of the tree in that order.
  std::vector<NamedParameter> parameters();
  std::int64_t parameter_count();

  /// Training mode (dropout on) or evaluation mode, for the whole tree. Modules start in training mode.
  void train(bool on = true);
  void eval() { train(false); }
  bool training() const { return training_; }
  /// Whether parameters of the whole tree ask for gradients.
  void freeze(bool frozen = true);

  /// Copies of all parameters by path, and back. Error: a name is missing or unknown, or a shape differs;
  /// then nothing has been changed.
  std::map<std::string, Array> state();
  void load_state(const std::map<std::string, Array>& state);

  /// For Child and ModuleList: puts this module under a parent.
  void attach(Module* parent, std::string name);

 private:
  friend class Parameter;
  friend class HookPoint;
  friend std::vector<NamedHookPoint> hook_points(Module& model);
  Module* parent_ = nullptr;
  std::string name_;
  bool training_ = true;
  std::vector<Parameter*> own_parameters_;
  std::vector<HookPoint*> hook_points_;
  std::vector<Module*> children_;
};

/// Draws every parameter of the tree: f(seed, path of the logical matrix, row, column).
void initialise(Module& model, std::uint64_t seed);

/// A module inside a module, by value.
template <class T>
class Child {
 public:
  template <class... Args>
  Child(Module* parent, std::string name, Args&&... args) : module_(std::forward<Args>(args)...) {
    module_.attach(parent, std::move(name));
  }
  T* operator->() { return &module_; }
  const T* operator->() const { return &module_; }
  T& operator*() { return module_; }
  template <class... Args>
  decltype(auto) operator()(Args&&... args) {
    const profile::LayerScope scope(module_);
    return module_(std::forward<Args>(args)...);
  }

 private:
  T module_;
};

/// A list of modules named "0", "1", … under its own name.
template <class T>
class ModuleList : public Module {
 public:
  ModuleList(Module* parent, std::string name) { attach(parent, std::move(name)); }
  template <class... Args>
  T& add(Args&&... args) {
    items_.push_back(std::make_unique<T>(std::forward<Args>(args)...));
    items_.back()->attach(this, std::to_string(items_.size() - 1));
    return *items_.back();
  }
  std::size_t size() const { return items_.size(); }
  T& operator[](std::size_t i) { return *items_[i]; }
  auto begin() { return items_.begin(); }
  auto end() { return items_.end(); }

 private:
  std::vector<std::unique_ptr<T>> items_;
};

}  // namespace headlab
