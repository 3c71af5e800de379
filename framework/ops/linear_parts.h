// What operations that contain linear maps share. Private to the ops room.
#pragma once

#include "framework/autograd/sink.h"
#include "framework/kernels/gemm.h"

namespace headlab::detail {

/// Errors: as of linear(), for an x of this shape and type.
void check_linear(const Shape& x, DType dtype, const Tensor& weight, const Tensor& bias);

/// x·weightᵀ + bias (checked before).
Array linear_value(const Array& x, const Tensor& weight, const Tensor& bias);
/// The same into y. `finish`: see gemm_bias_parallel().
void linear_into(Array& y, const Array& x, const Tensor& weight, const Tensor& bias,
                 const kernels::GemmFinish& finish = {});

// The gradients of y = x·Wᵀ + b: dx = dy·W, dW = dyᵀ·x, db = Σ_rows dy.
void give_linear_x(Sink& dx, const Array& dy, const Array& weight);
void give_linear_weight(Sink& dw, const Array& dy, const Array& x);
void give_linear_bias(Sink& db, const Array& dy);

}  // namespace headlab::detail
