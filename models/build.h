// From what a task needs to a model.
#pragma once

#include <memory>

#include "framework/train/model.h"

namespace headlab {

/// The model that fits; its parameters are zero until initialise().
std::unique_ptr<Model> build_model(const Needs& needs);

}  // namespace headlab
