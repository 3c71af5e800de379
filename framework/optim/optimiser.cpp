#include "framework/optim/optimiser.h"

#include <cmath>
#include <cstring>
#include <set>
#include <utility>

#include "framework/core/parallel.h"
#include "framework/core/profile.h"

namespace headlab {

Optimiser::Optimiser(ParameterBuffer& parameters, std::string name, std::vector<std::string> moments)
    : parameters_(parameters),
      name_(std::move(name)),
      moment_names_(std::move(moments)),
      steps_(parameters.segments().size(), 0) {
  for (std::size_t i = 0; i < moment_names_.size(); ++i) {
    moments_.push_back(Array::zeros(parameters.values().shape(), parameters.dtype()));
  }
}

void Optimiser::step(double lr, GradientScale scale) {
  check(std::isfinite(lr) && lr >= 0, name_, "lr {} is not a finite number of at least 0", lr);
  const profile::Scope scope(name_);
  auto& segments = parameters_.segments();
  const std::vector<ParameterBuffer::Piece> pieces = parameters_.touched_pieces();
  std::int64_t numbers = 0;
  for (const auto& piece : pieces) numbers += piece.size;
  for (std::size_t i = 0; i < segments.size(); ++i) {
    if (!segments[i].touched()) continue;
    ++steps_[i];
    segments[i].tensor.change();
  }
  if (pieces.empty()) return;
  Array values = parameters_.values();
  const Array& gradients = parameters_.gradients();
  const double average = static_cast<double>(numbers) / static_cast<double>(pieces.size());
  const Cost cost{.flops = 8 * average};  // half a nanosecond a number, as measured
  parallel_for(static_cast<std::int64_t>(pieces.size()), 1, cost, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const ParameterBuffer::Piece& piece = pieces[static_cast<std::size_t>(i)];
      update({piece.offset, piece.size, segments[piece.segment].decay, steps_[piece.segment], lr, scale},
             values, gradients, moments_);
    }
  });
}

// Calls f(key, place) for every moment of every parameter; the place shares the moment's numbers.
template <class F>
void Optimiser::for_each_array(const F& f) const {
  for (const ParameterBuffer::Segment& segment : parameters_.segments()) {
    for (std::size_t k = 0; k < moments_.size(); ++k) {
      f(name_ + "." + moment_names_[k] + "." + segment.name,
        moments_[k].range(segment.offset, segment.offset + segment.size).reshape(segment.tensor.shape()));
    }
  }
}

std::map<std::string, Array> Optimiser::state() const {
  std::map<std::string, Array> state;
  for_each_array([&](const std::string& key, const Array& place) { state[key] = place.copy(); });
  for (std::size_t i = 0; i < steps_.size(); ++i) {
    state[name_ + ".step." + parameters_.segments()[i].name] = Array::of<std::int64_t>(Shape{}, {steps_[i]});
  }
  return state;
}

void Optimiser::load_state(const std::map<std::string, Array>& state) {
  std::set<std::string> known;
  const auto find = [&](const std::string& key, const Shape& shape, DType dtype) -> const Array& {
    known.insert(key);
    const auto found = state.find(key);
    check(found != state.end(), name_, "the state has no '{}'", key);
    check(found->second.shape() == shape && found->second.dtype() == dtype, name_,
          "'{}' of the state is {} of {}, it needs to be {} of {}", key, found->second.shape(),
          name_of(found->second.dtype()), shape, name_of(dtype));
    return found->second;
  };
  std::vector<std::pair<Array, const Array*>> copies;
  for_each_array([&](const std::string& key, const Array& place) {
    copies.emplace_back(place, &find(key, place.shape(), place.dtype()));
  });
  std::vector<std::int64_t> steps;
  for (const ParameterBuffer::Segment& segment : parameters_.segments()) {
    const Array& count = find(name_ + ".step." + segment.name, Shape{}, DType::i64);
    steps.push_back(count.data<std::int64_t>()[0]);
    check(steps.back() >= 0, name_, "'{}.step.{}' of the state is {}, below 0", name_, segment.name,
          steps.back());
  }
  for (const auto& entry : state) {
    check(known.count(entry.first) != 0, name_, "the state has '{}', which belongs to no parameter",
          entry.first);
  }
  for (auto& [place, source] : copies) {
    std::memcpy(place.raw(), source->raw(), static_cast<std::size_t>(place.bytes()));
  }
  steps_ = std::move(steps);
}

std::int64_t Optimiser::steps(std::string_view name) const {
  for (std::size_t i = 0; i < steps_.size(); ++i) {
    if (parameters_.segments()[i].name == name) return steps_[i];
  }
  fail(name_, "there is no parameter '{}'", name);
}

}  // namespace headlab
