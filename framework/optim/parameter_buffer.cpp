#include "framework/optim/parameter_buffer.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <utility>

#include "framework/core/pool.h"

namespace headlab {

namespace {
constexpr std::int64_t alignment = 64;
constexpr std::int64_t piece_size = 16384;
}  // namespace

ParameterBuffer::ParameterBuffer(std::vector<OptimisedParameter> parameters) {
  DType dtype = DType::f32;
  std::int64_t total = 0;
  std::map<std::string, const Tensor*> by_name;
  for (const OptimisedParameter& parameter : parameters) {
    const Tensor& tensor = parameter.tensor;
    check(tensor.is_leaf(), "parameters", "'{}' is {}", parameter.name,
          tensor ? "a computed tensor, not a leaf" : "undefined");
    const auto found = by_name.emplace(parameter.name, &tensor).first;
    check(found->second->same_as(tensor), "parameters", "two tensors are named '{}'", parameter.name);
    const bool tied = std::any_of(segments_.begin(), segments_.end(),
                                  [&](const Segment& segment) { return segment.tensor.same_as(tensor); });
    if (tied || !tensor.requires_grad()) continue;
    if (segments_.empty()) {
      dtype = tensor.dtype();
    } else {
      check(tensor.dtype() == dtype, "parameters", "'{}' is {}, '{}' is {}", parameter.name,
            name_of(tensor.dtype()), segments_.front().name, name_of(dtype));
    }
    segments_.push_back({parameter.name, tensor, parameter.decay, total, tensor.size()});
    const std::int64_t step = alignment / bytes_of(dtype);
    total += (tensor.size() + step - 1) / step * step;
  }
  values_ = Array::zeros(Shape{total}, dtype);
  gradients_ = Array::zeros(Shape{total}, dtype);
  for (Segment& segment : segments_) {
    const Shape shape = segment.tensor.shape();
    const std::int64_t end = segment.offset + segment.size;
    Array value = values_.range(segment.offset, end).reshape(shape);
    std::memcpy(value.raw(), segment.tensor.value().raw(), static_cast<std::size_t>(value.bytes()));
    segment.tensor.bind(std::move(value), gradients_.range(segment.offset, end).reshape(shape));
  }
  // Where the values lay before: kept for reuse, they would double the weights, in sizes that nobody asks
  // for.
  pool::trim();
}

std::int64_t ParameterBuffer::count() const {
  std::int64_t count = 0;
  for (const Segment& segment : segments_) count += segment.size;
  return count;
}

std::vector<std::string> ParameterBuffer::decayed() const {
  std::vector<std::string> names;
  for (const Segment& segment : segments_) {
    if (segment.decay) names.push_back(segment.name);
  }
  return names;
}

void ParameterBuffer::clear_gradients() {
  for (Segment& segment : segments_) segment.tensor.clear_grad();
}

std::vector<ParameterBuffer::Piece> ParameterBuffer::touched_pieces() const {
  std::vector<Piece> pieces;
  for (std::size_t i = 0; i < segments_.size(); ++i) {
    const Segment& segment = segments_[i];
    if (!segment.touched()) continue;
    for (std::int64_t from = 0; from < segment.size; from += piece_size) {
      pieces.push_back({i, segment.offset + from, std::min(piece_size, segment.size - from)});
    }
  }
  return pieces;
}

}  // namespace headlab
