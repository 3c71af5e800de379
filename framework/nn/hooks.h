// Hooks: looking at, or replacing, what flows through a named point of a model.
//
//   Hook seen(model, "blocks.*.attn.z", [&](const HookSite& site, const Tensor& z) { … });           // reads
//   Hook edit(model, "blocks.3.attn.pattern", [](const HookSite&, const Tensor& p) { return mul(p, 0.5); });
//   GradientHook g(model, "blocks.0.attn.q", [&](const HookSite&, const Array& dq) { … });
//
// A hook works as long as it lives. Names come from the tree of modules, `*` stands for one part of a name.
#pragma once

#include <concepts>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "framework/autograd/tensor.h"
#include "framework/core/array.h"

namespace headlab {

class Module;

/// Where a hook fires.
struct HookSite {
  std::string name;  ///< "blocks.3.attn.z"
  Module& module;    ///< that owns the point
};

/// A named point of a module: a member, like a Parameter. The module passes a tensor through it.
class HookPoint {
 public:
  HookPoint(Module* owner, std::string name);
  HookPoint(const HookPoint&) = delete;
  HookPoint& operator=(const HookPoint&) = delete;

  /// x itself when no hook is attached; else what the hooks made of it, in the order in which they were
  /// attached. Error: a hook's result of another shape or type.
  Tensor operator()(const Tensor& x);
  bool active() const { return !values_.empty() || !gradients_.empty(); }
  const std::string& name() const { return name_; }
  std::string path() const;

 private:
  friend class Hook;
  friend class GradientHook;
  using ValueFunction = std::function<Tensor(const HookSite&, const Tensor&)>;
  using GradientFunction = std::function<Array(const HookSite&, const Array&)>;
  template <class F>
  struct Entry {
    const void* owner;
    std::shared_ptr<F> f;
  };

  Module* owner_;
  std::string name_;
  std::vector<Entry<ValueFunction>> values_;
  std::vector<Entry<GradientFunction>> gradients_;
};

/// Every point of a tree by its path, in the order of declaration.
std::vector<HookPoint*> hook_points(Module& model);

/// The points that a name, with or without wildcards, means. Error: none; the nearest names are listed.
std::vector<HookPoint*> find_hook_points(Module& model, std::string_view name);

/// Attached to values while it lives. A function that returns a Tensor replaces; one that returns nothing
/// only reads. Errors: see find_hook_points(). The model must outlive it; a hook must not be made or
/// destroyed inside another one's call.
class Hook {
 public:
  template <class F>
  Hook(Module& model, std::string_view name, F f) {
    attach(model, name, [f = std::move(f)](const HookSite& site, const Tensor& x) -> Tensor {
      if constexpr (std::is_void_v<std::invoke_result_t<const F&, const HookSite&, const Tensor&>>) {
        f(site, x);
        return x;
      } else {
        return f(site, x);
      }
    });
  }
  ~Hook();
  Hook(const Hook&) = delete;
  Hook& operator=(const Hook&) = delete;

 private:
  void attach(Module& model, std::string_view name, HookPoint::ValueFunction f);
  std::vector<HookPoint*> points_;
};

/// The same for the gradient that flows back through a point: a function that returns an Array replaces it.
/// Points whose tensor needs no gradient do not fire.
class GradientHook {
 public:
  template <class F>
  GradientHook(Module& model, std::string_view name, F f) {
    attach(model, name, [f = std::move(f)](const HookSite& site, const Array& dy) -> Array {
      if constexpr (std::is_void_v<std::invoke_result_t<const F&, const HookSite&, const Array&>>) {
        f(site, dy);
        return dy;
      } else {
        return f(site, dy);
      }
    });
  }
  ~GradientHook();
  GradientHook(const GradientHook&) = delete;
  GradientHook& operator=(const GradientHook&) = delete;

 private:
  void attach(Module& model, std::string_view name, HookPoint::GradientFunction f);
  std::vector<HookPoint*> points_;
};

/// Keeps the last values at the named sites, and nothing else.
class ActivationCache {
 public:
  ActivationCache(Module& model, const std::vector<std::string>& names);
  /// Error: nothing was kept under this name; those that were are listed.
  const Array& operator[](const std::string& name) const;
  bool has(const std::string& name) const { return values_.count(name) != 0; }
  const std::map<std::string, Array>& values() const { return values_; }
  void clear() { values_.clear(); }

 private:
  std::map<std::string, Array> values_;
  std::vector<std::unique_ptr<Hook>> hooks_;
};

}  // namespace headlab
