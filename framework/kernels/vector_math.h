// exp, log, log1p, tanh and erf on sixteen lanes: own polynomials (minimax fits of the relative error, by
// Remez exchange), at most 2 ulp from the exact value over the whole range, the same bits on every machine.
// NaN stays NaN. Subnormal results of exp are 0, whether or not flush-to-zero is set.
//
// Like simd.h, for sources only.
#pragma once

#include "framework/kernels/simd.h"

namespace headlab::kernels {

namespace detail {
/// c0 + c1·x + c2·x² + … by Horner's rule.
template <class... More>
HEADLAB_INLINE f32x16 polynomial(f32x16 x, float c0, More... more) {
  if constexpr (sizeof...(more) == 0) {
    return broadcast(c0);
  } else {
    return fma(polynomial(x, more...), x, broadcast(c0));
  }
}
// log 2 in two parts: a multiple of the first by an exponent is exact.
constexpr float log2_high = 0.693359375F;
constexpr float log2_low = -2.12194440e-4F;
}  // namespace detail

/// e^x. Over 88.7228: infinity. Under -87.3365 (2^-126): 0.
HEADLAB_INLINE f32x16 exp(f32x16 x) {
  // x = n·log 2 + r with |r| <= log(2)/2, and e^r = 1 + r + r²·p(r).
  const f32x16 n = round_to_nearest(x * broadcast(1.44269504F));
  f32x16 r = fnma(n, broadcast(detail::log2_high), x);
  r = fnma(n, broadcast(detail::log2_low), r);
  const f32x16 p = detail::polynomial(r, 4.999999404e-01F, 1.666651964e-01F, 4.166840017e-02F,
                                      8.368855342e-03F, 1.381455106e-03F);
  const f32x16 y = fma(r * r, p, r) + broadcast(1.0F);
  // 2^n goes straight into the exponent: n = 128 only occurs with y < 1. A NaN's n shifts out to 0.
  const f32x16 scaled = as_float(as_int(y) + shift_left<23>(to_int(n)));
  const f32x16 low = select(x < broadcast(-87.3365F), zero(), scaled);
  return select(x > broadcast(88.7228394F), broadcast(infinity), low);
}

/// The natural logarithm. Of ±0: -infinity; of a negative number: NaN. Subnormal arguments are exact.
HEADLAB_INLINE f32x16 log(f32x16 x) {
  const i32x16 given = as_int(x);
  // A positive subnormal is its own bits times 2^-149, whatever the processor's denormals-are-zero says.
  const mask16 negative = given < broadcast_int(0);
  const mask16 subnormal = (given < broadcast_int(0x00800000)) & ~negative;
  const i32x16 bits = select(subnormal, as_int(to_float(given)), given);
  // x = 2^e·(1 + f) with 1 + f in [sqrt(1/2), sqrt(2)): take the exponent of x / sqrt(1/2).
  const i32x16 shifted = bits - broadcast_int(0x3F3504F3);
  const i32x16 exponent = shift_right_arithmetic<23>(shifted);
  const f32x16 f = as_float(bits - shift_left<23>(exponent)) - broadcast(1.0F);
  const f32x16 e = to_float(select(subnormal, exponent - broadcast_int(149), exponent));
  // log(1 + f) = f - f²/2 + f³·p(f)
  const f32x16 p = detail::polynomial(f, 3.333331347e-01F, -2.500000894e-01F, 2.000211775e-01F,
                                      -1.666799635e-01F, 1.421956271e-01F, -1.240559369e-01F,
                                      1.188810244e-01F, -1.167560220e-01F, 6.746703386e-02F);
  const f32x16 square = f * f;
  f32x16 y = fma(e, broadcast(detail::log2_low), f * square * p);
  y = fnma(broadcast(0.5F), square, y);
  y = fma(e, broadcast(detail::log2_high), f + y);
  const f32x16 nan = broadcast(std::numeric_limits<float>::quiet_NaN());
  y = select(given == broadcast_int(0x7F800000), x, y);
  y = select(negative | is_nan(x), nan, y);
  return select((given & broadcast_int(INT32_MAX)) == broadcast_int(0), broadcast(minus_infinity), y);
}

/// log(1 + x) without loss near 0. Of -1: -infinity; below: NaN.
HEADLAB_INLINE f32x16 log1p(f32x16 x) {
  // s + lost is 1 + x exactly (Knuth's two-sum); log(s + lost) = log(s) + lost/s to first order.
  const f32x16 one = broadcast(1.0F);
  const f32x16 s = one + x;
  const f32x16 part = s - one;
  const f32x16 lost = (one - (s - part)) + (x - part);
  const f32x16 whole = log(s);
  return select((s == zero()) | (s == broadcast(infinity)), whole, whole + lost / s);
}

HEADLAB_INLINE f32x16 tanh(f32x16 x) {
  const f32x16 t = abs(x);
  // Small: t + t³·p(t²). Else 1 - 2/(e^2t + 1), which is 1 past 9.02.
  const f32x16 s = t * t;
  const f32x16 p = detail::polynomial(s, -3.333327770e-01F, 1.333132982e-01F, -5.372924730e-02F,
                                      2.060205676e-02F, -5.660836585e-03F);
  const f32x16 small = fma(t * s, p, t);
  const f32x16 e = exp(broadcast(2.0F) * min(t, broadcast(10.0F)));
  const f32x16 large = broadcast(1.0F) - broadcast(2.0F) / (e + broadcast(1.0F));
  return copy_sign(select(t < broadcast(0.625F), small, large), x);
}

HEADLAB_INLINE f32x16 erf(f32x16 x) {
  const f32x16 t = abs(x);
  // Small: t + t·p(t²). Else 1 - e^(-t + t·q(t)), q fitted to the logarithm of erfc; it is 1 past 3.92.
  const f32x16 p =
      detail::polynomial(t * t, 1.283791661e-01F, -3.761263490e-01F, 1.128369421e-01F, -2.685927041e-02F,
                         5.200634245e-03F, -8.137437981e-04F, 8.345227252e-05F);
  const f32x16 small = fma(t, p, t);
  const f32x16 u = min(t, broadcast(3.95F));
  const f32x16 q = detail::polynomial(u, -1.285199523e-01F, -6.356993914e-01F, -1.052868441e-01F,
                                      2.290602587e-02F, -3.219973529e-03F, 2.145947510e-04F);
  const f32x16 large = broadcast(1.0F) - exp(fma(u, q, -u));
  return copy_sign(select(t < broadcast(0.92F), small, large), x);
}

}  // namespace headlab::kernels
