#include "framework/nn/parameter.h"

#include "framework/nn/module.h"

namespace headlab {

namespace {
thread_local DType parameter_dtype = DType::f32;
}

DefaultDType::DefaultDType(DType dtype) : before_(parameter_dtype) { parameter_dtype = dtype; }
DefaultDType::~DefaultDType() { parameter_dtype = before_; }
DType DefaultDType::now() { return parameter_dtype; }

Parameter::Parameter(Module* owner, std::string name, Shape shape, Init init, Role role,
                     std::vector<Block> blocks)
    : name_(std::move(name)),
      tensor_(Array::zeros(shape, DefaultDType::now()), true),
      init_(init),
      role_(role),
      blocks_(std::move(blocks)) {
  std::int64_t rows = 0;
  for (const Block& block : blocks_) rows += block.rows;
  check(blocks_.empty() || rows == shape.dim(0), "parameter",
        "the blocks of '{}' have {} rows, shape {} has another number", name_, rows, shape);
  owner->own_parameters_.push_back(this);
}

void Parameter::initialise(std::uint64_t seed, const std::string& module_path) {
  const std::string prefix = module_path.empty() ? "" : module_path + ".";
  Array& value = tensor_.change();
  if (blocks_.empty()) return draw(value, init_, seed, prefix + name_);
  std::int64_t row = 0;
  for (const Block& block : blocks_) {
    Array part = value.range(row, row + block.rows);
    draw(part, init_, seed, prefix + block.name);
    row += block.rows;
  }
}

}  // namespace headlab
