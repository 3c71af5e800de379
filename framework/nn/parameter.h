// A parameter of a module: a leaf tensor with a name and a rule for its first values.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "framework/autograd/tensor.h"
#include "framework/nn/init.h"

namespace headlab {

/// What kind of number a parameter holds; optimisers choose by it what decays.
enum class Role : std::uint8_t { matrix, embedding, position, bias, norm };

class Module;

/// A named leaf tensor that belongs to a module. Usable wherever a Tensor is.
class Parameter {
 public:
  /// One logical matrix of several stacked along the leading axis: W_Q, W_K, W_V in one packed matrix.
  struct Block {
    std::string name;
    std::int64_t rows;
  };
  /// The numbers are zero until initialise(). Its type is the one of DefaultDType.
  Parameter(Module* owner, std::string name, Shape shape, Init init, Role role,
            std::vector<Block> blocks = {});
  Parameter(const Parameter&) = delete;
  Parameter& operator=(const Parameter&) = delete;

  operator const Tensor&() const { return tensor_; }  // NOLINT: a parameter is a tensor
  const Tensor& tensor() const { return tensor_; }
  Tensor& tensor() { return tensor_; }
  const std::string& name() const { return name_; }
  const Init& init() const { return init_; }
  Role role() const { return role_; }
  /// Draws the first values; see draw().
  void initialise(std::uint64_t seed, const std::string& module_path);

 private:
  std::string name_;
  Tensor tensor_;
  Init init_;
  Role role_;
  std::vector<Block> blocks_;
};

/// The type of parameters made by this thread while it lives; f32 otherwise. f64 models exist to be checked.
class DefaultDType {
 public:
  explicit DefaultDType(DType dtype);
  ~DefaultDType();
  DefaultDType(const DefaultDType&) = delete;
  DefaultDType& operator=(const DefaultDType&) = delete;
  static DType now();

 private:
  DType before_;
};

}  // namespace headlab
