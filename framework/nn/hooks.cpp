#include "framework/nn/hooks.h"

#include <algorithm>

#include <fmt/format.h>

#include "framework/autograd/node.h"
#include "framework/core/suggest.h"
#include "framework/nn/module.h"

namespace headlab {

namespace {

using Parts = std::vector<std::string_view>;

Parts parts_of(std::string_view name) {
  Parts parts;
  while (true) {
    const std::size_t dot = name.find('.');
    parts.push_back(name.substr(0, dot));
    if (dot == std::string_view::npos) return parts;
    name.remove_prefix(dot + 1);
  }
}

/// Whether a path fits a name in which `*` stands for one part.
bool fits(const Parts& name, const Parts& path) {
  return std::equal(name.begin(), name.end(), path.begin(), path.end(),
                    [](std::string_view n, std::string_view p) { return n == "*" || n == p; });
}

/// ", the nearest are 'a', 'b'", or nothing where there are none.
std::string listed(std::string_view name, const std::vector<std::string>& candidates) {
  const std::vector<std::string> nearest = nearest_names(name, candidates, 4);
  std::string text;
  for (const std::string& one : nearest) {
    text += text.empty() ? (nearest.size() == 1 ? "; the nearest is '" : "; the nearest are '") : "', '";
    text += one;
  }
  return text.empty() ? text : text + "'";
}

/// The path with the wildcards of a mistyped name where their parts are: what should be suggested for
/// "blocks.*.atn.z" is "blocks.*.attn.z".
std::string with_wildcards_of(const Parts& name, std::string_view path) {
  const Parts parts = parts_of(path);
  std::string result;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (i > 0) result += '.';
    result += i < name.size() && name[i] == "*" ? "*" : parts[i];
  }
  return result;
}

[[noreturn]] void refuse(std::string_view name, const std::vector<NamedHookPoint>& points) {
  if (points.empty()) fail("hook", "the model has no '{}', nor any other point for hooks", name);
  const Parts parts = parts_of(name);
  std::vector<std::string> candidates;
  for (const NamedHookPoint& point : points) {
    std::string candidate = with_wildcards_of(parts, point.path);
    if (std::find(candidates.begin(), candidates.end(), candidate) == candidates.end())
      candidates.push_back(std::move(candidate));
  }
  fail("hook", "the model has no '{}'{}", name, listed(name, candidates));
}

template <class List>
void remove(List& list, const void* hook) {
  std::erase_if(list, [hook](const auto& attached) { return attached->hook == hook; });
}

}  // namespace

HookPoint::HookPoint(Module* owner, std::string name) : owner_(owner), name_(std::move(name)) {
  for (const HookPoint* other : owner->hook_points_)
    check(other->name_ != name_, "hook", "two points of one module are named '{}'", name_);
  owner->hook_points_.push_back(this);
}

std::string HookPoint::path() const {
  const std::string above = owner_->path();
  return above.empty() ? name_ : above + "." + name_;
}

Tensor HookPoint::operator()(const Tensor& given) {
  if (!active()) return given;
  Tensor x = given;
  for (const auto& hook : values_) {
    Tensor y = (*hook->f)(hook->site, x);
    check(static_cast<bool>(y) && y.shape() == given.shape() && y.dtype() == given.dtype(), "hook",
          "{} is {} of {}; the hook gave {}", hook->site.name, given.shape(), name_of(given.dtype()),
          y ? fmt::format("{} of {}", y.shape(), name_of(y.dtype())) : std::string("nothing"));
    x = std::move(y);
  }
  if (gradients_.empty()) return x;
  // The graph may outlive a hook, which then no longer works.
  using Gradient = const Attached<GradientFunction>;
  const std::vector<std::weak_ptr<Gradient>> hooks(gradients_.begin(), gradients_.end());
  return record_view("hook", x.value(), x, [hooks](const Array& dy, Sinks dx) {
    Array gradient = dy;
    for (const std::weak_ptr<Gradient>& one : hooks) {
      const std::shared_ptr<Gradient> hook = one.lock();
      if (!hook) continue;
      gradient = (*hook->f)(hook->site, gradient);
      check(gradient && gradient.shape() == dy.shape() && gradient.dtype() == dy.dtype(), "hook",
            "the gradient of {} is {} of {}; the hook gave {}", hook->site.name, dy.shape(),
            name_of(dy.dtype()),
            gradient ? fmt::format("{} of {}", gradient.shape(), name_of(gradient.dtype()))
                     : std::string("nothing"));
    }
    dx[0].add(gradient);
  });
}

std::vector<NamedHookPoint> hook_points(Module& model) {
  std::vector<NamedHookPoint> all;
  model.visit([&](Module& module) {
    std::string prefix = module.path_from(model);
    if (!prefix.empty()) prefix += '.';
    for (HookPoint* point : module.hook_points_) all.push_back({prefix + point->name(), point});
  });
  return all;
}

std::vector<NamedHookPoint> find_hook_points(Module& model, std::string_view name) {
  const std::vector<NamedHookPoint> all = hook_points(model);
  const Parts parts = parts_of(name);
  std::vector<NamedHookPoint> found;
  for (const NamedHookPoint& point : all) {
    if (fits(parts, parts_of(point.path))) found.push_back(point);
  }
  if (found.empty()) refuse(name, all);
  return found;
}

void Hook::attach(Module& model, std::string_view name, HookPoint::ValueFunction f) {
  using Attached = HookPoint::Attached<HookPoint::ValueFunction>;
  const auto shared = std::make_shared<const HookPoint::ValueFunction>(std::move(f));
  for (const NamedHookPoint& found : find_hook_points(model, name)) {
    points_.push_back(found.point);
    const HookSite site{found.path, *found.point->owner_};
    found.point->values_.push_back(std::make_shared<Attached>(Attached{this, site, shared}));
  }
}
Hook::~Hook() {
  for (HookPoint* point : points_) remove(point->values_, this);
}

void GradientHook::attach(Module& model, std::string_view name, HookPoint::GradientFunction f) {
  using Attached = HookPoint::Attached<HookPoint::GradientFunction>;
  const auto shared = std::make_shared<const HookPoint::GradientFunction>(std::move(f));
  for (const NamedHookPoint& found : find_hook_points(model, name)) {
    points_.push_back(found.point);
    const HookSite site{found.path, *found.point->owner_};
    found.point->gradients_.push_back(std::make_shared<Attached>(Attached{this, site, shared}));
  }
}
GradientHook::~GradientHook() {
  for (HookPoint* point : points_) remove(point->gradients_, this);
}

ActivationCache::ActivationCache(Module& model, const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    hooks_.push_back(std::make_unique<Hook>(
        model, name, [this](const HookSite& site, const Tensor& x) { values_[site.name] = x.value(); }));
  }
}

const Array& ActivationCache::operator[](const std::string& name) const {
  const auto found = values_.find(name);
  if (found == values_.end()) {
    std::vector<std::string> kept;
    for (const auto& entry : values_) kept.push_back(entry.first);
    fail("ActivationCache", "nothing was kept under '{}'{}", name, listed(name, kept));
  }
  return found->second;
}

}  // namespace headlab
