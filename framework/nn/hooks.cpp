#include "framework/nn/hooks.h"

#include <algorithm>

#include <fmt/format.h>

#include "framework/autograd/node.h"
#include "framework/core/suggest.h"
#include "framework/nn/module.h"

namespace headlab {

namespace {

/// Whether a path fits a name in which `*` stands for one part.
bool fits(std::string_view name, std::string_view path) {
  while (true) {
    const std::size_t n = name.find('.');
    const std::size_t p = path.find('.');
    if (name.substr(0, n) != "*" && name.substr(0, n) != path.substr(0, p)) return false;
    if (n == std::string_view::npos || p == std::string_view::npos) return n == p;
    name.remove_prefix(n + 1);
    path.remove_prefix(p + 1);
  }
}

template <class Entries>
void remove(Entries& entries, const void* owner) {
  std::erase_if(entries, [owner](const auto& entry) { return entry.owner == owner; });
}

}  // namespace

HookPoint::HookPoint(Module* owner, std::string name) : owner_(owner), name_(std::move(name)) {
  owner->hook_points_.push_back(this);
}

std::string HookPoint::path() const {
  const std::string above = owner_->path();
  return above.empty() ? name_ : above + "." + name_;
}

Tensor HookPoint::operator()(const Tensor& given) {
  if (!active()) return given;
  const HookSite site{path(), *owner_};
  Tensor x = given;
  for (const auto& entry : values_) {
    Tensor y = (*entry.f)(site, x);
    check(static_cast<bool>(y) && y.shape() == given.shape() && y.dtype() == given.dtype(), "hook",
          "{} is {} of {}; the hook gave {}", site.name, given.shape(), name_of(given.dtype()),
          y ? fmt::format("{} of {}", y.shape(), name_of(y.dtype())) : std::string("nothing"));
    x = std::move(y);
  }
  if (gradients_.empty()) return x;
  std::vector<std::shared_ptr<GradientFunction>> functions;
  for (const auto& entry : gradients_) functions.push_back(entry.f);
  return record_view("hook", x.value(), x, [functions, site](const Array& dy, Sinks dx) {
    Array gradient = dy;
    for (const auto& f : functions) {
      gradient = (*f)(site, gradient);
      check(gradient && gradient.shape() == dy.shape() && gradient.dtype() == dy.dtype(), "hook",
            "the gradient of {} is {}; the hook gave {}", site.name, dy.shape(),
            gradient ? fmt::format("{}", gradient.shape()) : std::string("nothing"));
    }
    dx[0].add(gradient);
  });
}

std::vector<HookPoint*> hook_points(Module& model) {
  std::vector<HookPoint*> all;
  model.visit(
      [&](Module& module) { all.insert(all.end(), module.hook_points_.begin(), module.hook_points_.end()); });
  return all;
}

std::vector<HookPoint*> find_hook_points(Module& model, std::string_view name) {
  std::vector<HookPoint*> found;
  std::vector<std::string> names;
  for (HookPoint* point : hook_points(model)) {
    names.push_back(point->path());
    if (fits(name, names.back())) found.push_back(point);
  }
  if (found.empty()) fail("hook", "the model has no '{}'{}", name, did_you_mean(name, names));
  return found;
}

void Hook::attach(Module& model, std::string_view name, HookPoint::ValueFunction f) {
  const auto shared = std::make_shared<HookPoint::ValueFunction>(std::move(f));
  points_ = find_hook_points(model, name);
  for (HookPoint* point : points_) point->values_.push_back({this, shared});
}
Hook::~Hook() {
  for (HookPoint* point : points_) remove(point->values_, this);
}

void GradientHook::attach(Module& model, std::string_view name, HookPoint::GradientFunction f) {
  const auto shared = std::make_shared<HookPoint::GradientFunction>(std::move(f));
  points_ = find_hook_points(model, name);
  for (HookPoint* point : points_) point->gradients_.push_back({this, shared});
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
    fail("ActivationCache", "nothing was kept under '{}'{}", name, did_you_mean(name, kept));
  }
  return found->second;
}

}  // namespace headlab
