// The formulas of elementwise.h, one number (f64) or sixteen (f32) at a time, for kernels that fuse them with
// something else. value(Tag{}, x) is f(x); gradient(Tag{}, dy, kept) is dy f'(x). Where both are wanted of
// one x, value_and_slope(Tag{}, x) has f(x) and f'(x) for little more than one of them.
//
// Like simd.h, for sources only.
#pragma once

#include <cmath>

#include "framework/kernels/elementwise.h"
#include "framework/kernels/simd.h"
#include "framework/kernels/vector_math.h"

namespace headlab::kernels {

template <class V>
struct ValueAndSlope {
  V value, slope;
};

// e^x: dx = dy y
HEADLAB_INLINE f32x16 value(Exp, f32x16 x) { return exp(x); }
inline double value(Exp, double x) { return std::exp(x); }
HEADLAB_INLINE f32x16 gradient(Exp, f32x16 dy, f32x16 y) { return dy * y; }
inline double gradient(Exp, double dy, double y) { return dy * y; }

// log x: dx = dy / x
HEADLAB_INLINE f32x16 value(Log, f32x16 x) { return log(x); }
inline double value(Log, double x) { return std::log(x); }
HEADLAB_INLINE f32x16 gradient(Log, f32x16 dy, f32x16 x) { return dy / x; }
inline double gradient(Log, double dy, double x) { return dy / x; }

// √x: dx = dy / 2y
HEADLAB_INLINE f32x16 value(Sqrt, f32x16 x) { return sqrt(x); }
inline double value(Sqrt, double x) { return std::sqrt(x); }
HEADLAB_INLINE f32x16 gradient(Sqrt, f32x16 dy, f32x16 y) { return broadcast(0.5F) * dy / y; }
inline double gradient(Sqrt, double dy, double y) { return 0.5 * dy / y; }

// max(x, 0), compared so that NaN is kept: dx = dy where y > 0
HEADLAB_INLINE f32x16 value(Relu, f32x16 x) { return select(x <= zero(), zero(), x); }
inline double value(Relu, double x) { return x <= 0 ? 0 : x; }
HEADLAB_INLINE f32x16 gradient(Relu, f32x16 dy, f32x16 y) { return select(y <= zero(), zero(), dy); }
inline double gradient(Relu, double dy, double y) { return y <= 0 ? 0 : dy; }

// σ(x) with an exponential that never overflows: 1/(1 + e^-x) for x >= 0, e^x/(1 + e^x) below.
// dx = dy y (1 - y)
HEADLAB_INLINE f32x16 value(Sigmoid, f32x16 x) {
  const f32x16 e = exp(-abs(x));
  const f32x16 upper = broadcast(1.0F) / (broadcast(1.0F) + e);
  return select(x < zero(), e * upper, upper);
}
inline double value(Sigmoid, double x) {
  const double e = std::exp(-std::abs(x));
  return (x < 0 ? e : 1) / (1 + e);
}
HEADLAB_INLINE f32x16 gradient(Sigmoid, f32x16 dy, f32x16 y) { return dy * (y * (broadcast(1.0F) - y)); }
inline double gradient(Sigmoid, double dy, double y) { return dy * (y * (1 - y)); }

// x σ(x): dx = dy (σ + x σ (1 - σ)). x σ is bounded below and (1 - σ) vanishes above: no overflow.
HEADLAB_INLINE f32x16 value(Silu, f32x16 x) { return x * value(Sigmoid{}, x); }
inline double value(Silu, double x) { return x * value(Sigmoid{}, x); }
HEADLAB_INLINE f32x16 gradient(Silu, f32x16 dy, f32x16 x) {
  const f32x16 s = value(Sigmoid{}, x);
  return dy * fma(x * s, broadcast(1.0F) - s, s);
}
inline double gradient(Silu, double dy, double x) {
  const double s = value(Sigmoid{}, x);
  return dy * (s + x * s * (1 - s));
}

// tanh x: dx = dy (1 - y²)
HEADLAB_INLINE f32x16 value(Tanh, f32x16 x) { return tanh(x); }
inline double value(Tanh, double x) { return std::tanh(x); }
HEADLAB_INLINE f32x16 gradient(Tanh, f32x16 dy, f32x16 y) { return dy * fnma(y, y, broadcast(1.0F)); }
inline double gradient(Tanh, double dy, double y) { return dy * (1 - y * y); }

// log(1 + e^x) = max(x, 0) + log(1 + e^-|x|): dx = dy σ(x)
HEADLAB_INLINE f32x16 value(Softplus, f32x16 x) { return max(x, zero()) + log1p(exp(-abs(x))); }
inline double value(Softplus, double x) { return (x <= 0 ? 0 : x) + std::log1p(std::exp(-std::abs(x))); }
HEADLAB_INLINE f32x16 gradient(Softplus, f32x16 dy, f32x16 x) { return dy * value(Sigmoid{}, x); }
inline double gradient(Softplus, double dy, double x) { return dy * value(Sigmoid{}, x); }

// The tanh form of GELU: (1 + tanh u)/2 = σ(2u), so y = x s with s = σ(2u), 2u = x (c + c₃ x²), and
// dx = dy (s + x s (1 - s) (c + 3 c₃ x²)). Past |x| = 40 the second term is 0 in f64 too; cutting x there
// keeps x² from overflowing and meeting that 0.
namespace detail {
constexpr double gelu_c = 1.5957691216057308;     // 2 √(2/π)
constexpr double gelu_c3 = 0.071354816272600253;  // 0.044715 c
constexpr double gelu_cut = 40;
constexpr float gelu_c_f = 1.59576912F;
constexpr float gelu_c3_f = 0.0713548163F;
constexpr float gelu_3c3_f = 0.214064449F;
constexpr float gelu_cut_f = 40;
}  // namespace detail
HEADLAB_INLINE f32x16 value(Gelu, f32x16 x) {
  const f32x16 u = x * fma(x * x, broadcast(detail::gelu_c3_f), broadcast(detail::gelu_c_f));
  return x * value(Sigmoid{}, u);
}
inline double value(Gelu, double x) {
  return x * value(Sigmoid{}, x * (detail::gelu_c + detail::gelu_c3 * x * x));
}
HEADLAB_INLINE ValueAndSlope<f32x16> value_and_slope(Gelu, f32x16 x) {
  const f32x16 t = max(min(x, broadcast(detail::gelu_cut_f)), broadcast(-detail::gelu_cut_f));
  const f32x16 square = t * t;
  const f32x16 s =
      value(Sigmoid{}, t * fma(square, broadcast(detail::gelu_c3_f), broadcast(detail::gelu_c_f)));
  const f32x16 slope = fma(square, broadcast(detail::gelu_3c3_f), broadcast(detail::gelu_c_f));
  return {x * s, fma(t * s * (broadcast(1.0F) - s), slope, s)};
}
HEADLAB_INLINE f32x16 gradient(Gelu, f32x16 dy, f32x16 x) { return dy * value_and_slope(Gelu{}, x).slope; }
inline ValueAndSlope<double> value_and_slope(Gelu, double x) {
  const double t = x < -detail::gelu_cut ? -detail::gelu_cut : x > detail::gelu_cut ? detail::gelu_cut : x;
  const double s = value(Sigmoid{}, t * (detail::gelu_c + detail::gelu_c3 * t * t));
  return {x * s, s + t * s * (1 - s) * (detail::gelu_c + 3 * detail::gelu_c3 * t * t)};
}
inline double gradient(Gelu, double dy, double x) { return dy * value_and_slope(Gelu{}, x).slope; }

// x Φ(x) with the normal distribution Φ and density φ: dx = dy (Φ + x φ)
namespace detail {
constexpr double inverse_root_two = 0.70710678118654752;
constexpr double inverse_root_two_pi = 0.39894228040143268;
}  // namespace detail
HEADLAB_INLINE f32x16 value(GeluExact, f32x16 x) {
  const f32x16 half = broadcast(0.5F) * x;
  return fma(half, erf(x * broadcast(0.707106781F)), half);
}
inline double value(GeluExact, double x) { return 0.5 * x * std::erfc(-x * detail::inverse_root_two); }
HEADLAB_INLINE ValueAndSlope<f32x16> value_and_slope(GeluExact, f32x16 x) {
  const f32x16 half = broadcast(0.5F) * x;
  const f32x16 e = erf(x * broadcast(0.707106781F));
  const f32x16 phi = fma(broadcast(0.5F), e, broadcast(0.5F));
  const f32x16 density = broadcast(0.398942280F) * exp(broadcast(-0.5F) * (x * x));
  return {fma(half, e, half), fma(x, density, phi)};
}
HEADLAB_INLINE f32x16 gradient(GeluExact, f32x16 dy, f32x16 x) {
  return dy * value_and_slope(GeluExact{}, x).slope;
}
inline ValueAndSlope<double> value_and_slope(GeluExact, double x) {
  const double phi = 0.5 * std::erfc(-x * detail::inverse_root_two);
  return {value(GeluExact{}, x), phi + x * detail::inverse_root_two_pi * std::exp(-0.5 * x * x)};
}
inline double gradient(GeluExact, double dy, double x) { return dy * value_and_slope(GeluExact{}, x).slope; }

}  // namespace headlab::kernels
