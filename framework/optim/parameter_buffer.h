// All parameters of a model in one flat array, their gradients in another: what optimisers and clipping work
// on.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "framework/autograd/tensor.h"

namespace headlab {

struct OptimisedParameter {
  std::string name;
  Tensor tensor;
  bool decay = true;  ///< weight decay: for matrices and embeddings, not for biases and gains of norms
};

/// Each parameter is a segment that starts at a multiple of 64 bytes. Make it once the model has its initial
/// values; the tensors then live in here for good. Not thread-safe, neither copied nor moved.
class ParameterBuffer {
 public:
  /// Moves the values into the flat array and binds the gradients (any there were are forgotten). Of tensors
  /// that are one and the same (tied weights) the first counts; those that need no gradient (frozen) are left
  /// out. Errors, before anything is moved: an undefined or computed tensor, two tensors of one name, types
  /// that differ.
  explicit ParameterBuffer(std::vector<OptimisedParameter> parameters);
  ParameterBuffer(const ParameterBuffer&) = delete;
  ParameterBuffer& operator=(const ParameterBuffer&) = delete;

  struct Segment {
    std::string name;
    Tensor tensor;
    bool decay;
    std::int64_t offset;  ///< in the flat arrays, in numbers
    std::int64_t size;
    /// Whether a gradient has reached it since clear_gradients().
    bool touched() const { return tensor.has_grad(); }
  };
  const std::vector<Segment>& segments() const { return segments_; }
  std::vector<Segment>& segments() { return segments_; }

  /// f32 where there are no parameters.
  DType dtype() const { return values_.dtype(); }
  /// The flat arrays, with zeros between the segments. A gradient of a segment that is not touched is stale.
  const Array& values() const { return values_; }
  Array& gradients() { return gradients_; }
  const Array& gradients() const { return gradients_; }

  /// The number of parameters, each tied one once.
  std::int64_t count() const;
  /// Names of the parameters that weight decay applies to.
  std::vector<std::string> decayed() const;
  /// Forgets all gradients.
  void clear_gradients();

  /// A stretch of one segment: a chunk of work.
  struct Piece {
    std::size_t segment;
    std::int64_t offset;  ///< in the flat arrays
    std::int64_t size;
  };
  /// All touched segments in order, cut into pieces of a fixed size.
  std::vector<Piece> touched_pieces() const;

 private:
  std::vector<Segment> segments_;
  Array values_;
  Array gradients_;
};

}  // namespace headlab
