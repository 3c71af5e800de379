// Hooks: looking at, or replacing, what flows through a named point of a model.
//
//   Hook seen(model, "blocks.*.attn.z", [&](const HookSite& site, const Tensor& z) { … });           // reads
//   Hook edit(model, "blocks.3.attn.pattern", [](const HookSite&, const Tensor& p) { return mul(p, 0.5); });
//   GradientHook g(model, "blocks.0.attn.q", [&](const HookSite&, const Array& dq) { … });
//
// A hook works as long as it lives. Names come from the tree of modules and are seen from the module that the
// hook is given, like those of parameters(): "attn.z" of model.blocks[0]. `*` stands for one part of a name.
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
  std::string name;  ///< "blocks.3.attn.z", seen from the module that the hook was given
  Module& module;    ///< that owns the point
};

/// A named point of a module: a member, like a Parameter. The module passes a tensor through it.
class HookPoint {
 public:
  /// Error: the module has a point of this name.
  HookPoint(Module* owner, std::string name);
  HookPoint(const HookPoint&) = delete;
  HookPoint& operator=(const HookPoint&) = delete;

  /// x itself when no hook is attached; else what the hooks made of it, in the order in which they were
  /// attached. Error: a hook's result of another shape or type.
  Tensor operator()(const Tensor& x);
  bool active() const { return !values_.empty() || !gradients_.empty(); }
  const std::string& name() const { return name_; }
  /// The module's path and the name: "blocks.3.attn.z".
  std::string path() const;

 private:
  friend class Hook;
  friend class GradientHook;
  using ValueFunction = std::function<Tensor(const HookSite&, const Tensor&)>;
  using GradientFunction = std::function<Array(const HookSite&, const Array&)>;
  template <class F>
  struct Attached {
    const void* hook;
    HookSite site;
    std::shared_ptr<const F> f;
  };
  template <class F>
  using List = std::vector<std::shared_ptr<const Attached<F>>>;

  Module* owner_;
  std::string name_;
  List<ValueFunction> values_;
  List<GradientFunction> gradients_;
};

struct NamedHookPoint {
  std::string path;  ///< seen from the module that was asked
  HookPoint* point;
};

/// Every point of a tree, in the order of declaration.
std::vector<NamedHookPoint> hook_points(Module& model);

/// The points that a name, with or without wildcards, means. Error: none; the nearest names are listed.
std::vector<NamedHookPoint> find_hook_points(Module& model, std::string_view name);

/// Attached to values while it lives. A function that returns a Tensor replaces; one that returns nothing
/// only reads, and changes no bit. What a function throws reaches the caller of the model; nothing has to be
/// tidied up. Errors: see find_hook_points(). The model must outlive it; a hook must not be made or destroyed
/// inside another one's call. Models of different threads may have hooks of their own.
class Hook {
 public:
  template <class F>
  Hook(Module& model, std::string_view name, F f) : Hook() {
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
  Hook() = default;
  void attach(Module& model, std::string_view name, HookPoint::ValueFunction f);
  std::vector<HookPoint*> points_;
};

/// The same for the gradient that flows back through a point: a function that returns an Array replaces it.
/// Where there are value hooks, too, it is the gradient of what they made of the value; it flows on to the
/// original through what they did. Fires during backward(), as long as the hook lives, for forward passes
/// made while it lived. Points whose tensor needs no gradient do not fire.
class GradientHook {
 public:
  template <class F>
  GradientHook(Module& model, std::string_view name, F f) : GradientHook() {
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
  GradientHook() = default;
  void attach(Module& model, std::string_view name, HookPoint::GradientFunction f);
  std::vector<HookPoint*> points_;
};

/// Keeps the last values at the named sites, as hooks made before it left them, and nothing else.
class ActivationCache {
 public:
  ActivationCache(Module& model, const std::vector<std::string>& names);
  ActivationCache(const ActivationCache&) = delete;
  ActivationCache& operator=(const ActivationCache&) = delete;
  /// By HookSite::name. Error: nothing was kept under this name; the nearest that were are listed.
  const Array& operator[](const std::string& name) const;
  bool has(const std::string& name) const { return values_.count(name) != 0; }
  const std::map<std::string, Array>& values() const { return values_; }
  void clear() { values_.clear(); }

 private:
  std::map<std::string, Array> values_;
  std::vector<std::unique_ptr<Hook>> hooks_;
};

}  // namespace headlab
