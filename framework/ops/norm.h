// Layer norm (Ba et al. 2016) and root-mean-square norm (Zhang and Sennrich 2019) over the last axis.
#pragma once

#include "framework/autograd/tensor.h"

namespace headlab {

/// (x - mean) / sqrt(variance + eps) · gain + bias over the last axis of x [..., n], the variance biased.
/// gain and bias are of [n], either may be an undefined Tensor. A constant row gives the bias. f32 or f64,
/// all of one type. Errors: no axis; a gain or bias of another shape or type; eps not a finite number over 0.
Tensor layer_norm(const Tensor& x, const Tensor& gain = {}, const Tensor& bias = {}, double eps = 1e-5);

/// x / sqrt(mean of x² + eps) · gain, as layer_norm otherwise.
Tensor rms_norm(const Tensor& x, const Tensor& gain = {}, double eps = 1e-6);

}  // namespace headlab
