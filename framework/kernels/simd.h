// The only file with SIMD intrinsics. f32x16 is sixteen f32 lanes on every instruction set: one 512-bit
// register where AVX-512 is on, else two 256-bit ones (AVX2 and FMA). Every function gives the same bits on
// both (of a NaN only that it is one).
//
// To be included by sources only, never by a header that users see: it needs headlab's own compiler flags.
//
// Conventions: lane 0 is the lowest address. Loads and stores need no alignment. Tails are masked lanes,
// never a scalar loop: load_masked(p, count, 0) for sums, minus_infinity for maxima; lanes at and past
// `count` touch no memory. A count below 0 means 0, above 16 means 16.
#pragma once

#include <cstdint>
#include <limits>

#if defined(__GNUC__) && !defined(__clang__)
// g++ 12 takes the undefined registers in its own header for mistakes.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
#include <immintrin.h>
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic pop
#endif

#if !defined(__AVX2__) || !defined(__FMA__)
#error "headlab's kernels need AVX2 and FMA (-march=x86-64-v3 or better)"
#endif
#if defined(__AVX512F__) && defined(__AVX512DQ__) && defined(__AVX512VL__) && defined(__AVX512BW__)
#define HEADLAB_AVX512 1
#else
#define HEADLAB_AVX512 0
#endif
#define HEADLAB_INLINE [[gnu::always_inline]] inline

namespace headlab::kernels {

constexpr std::int64_t lanes = 16;
constexpr float infinity = std::numeric_limits<float>::infinity();
constexpr float minus_infinity = -infinity;

#if HEADLAB_AVX512

struct f32x16 {
  __m512 v;
};
struct i32x16 {
  __m512i v;
};
struct mask16 {
  __mmask16 v;
};

HEADLAB_INLINE f32x16 broadcast(float x) { return {_mm512_set1_ps(x)}; }
HEADLAB_INLINE i32x16 broadcast_int(std::int32_t x) { return {_mm512_set1_epi32(x)}; }
HEADLAB_INLINE f32x16 load(const float* p) { return {_mm512_loadu_ps(p)}; }
HEADLAB_INLINE i32x16 load_int(const std::int32_t* p) { return {_mm512_loadu_si512(p)}; }
HEADLAB_INLINE void store(float* p, f32x16 x) { _mm512_storeu_ps(p, x.v); }
HEADLAB_INLINE void store_int(std::int32_t* p, i32x16 x) { _mm512_storeu_si512(p, x.v); }

/// Lanes 0 … count-1.
HEADLAB_INLINE mask16 first_lanes(std::int64_t count) {
  const std::int64_t n = count < 0 ? 0 : count > lanes ? lanes : count;
  return {static_cast<__mmask16>((1U << n) - 1U)};
}
HEADLAB_INLINE f32x16 load_masked(const float* p, mask16 m, float fill) {
  return {_mm512_mask_loadu_ps(_mm512_set1_ps(fill), m.v, p)};
}
HEADLAB_INLINE void store_masked(float* p, f32x16 x, mask16 m) { _mm512_mask_storeu_ps(p, m.v, x.v); }
/// Lanes 0 … 7 of these, so that the work on the others can be left out where a vector is two registers.
HEADLAB_INLINE void store_low_masked(float* p, f32x16 x, mask16 m) {
  _mm256_mask_storeu_ps(p, static_cast<__mmask8>(m.v), _mm512_castps512_ps256(x.v));
}

HEADLAB_INLINE f32x16 operator+(f32x16 a, f32x16 b) { return {_mm512_add_ps(a.v, b.v)}; }
HEADLAB_INLINE f32x16 operator-(f32x16 a, f32x16 b) { return {_mm512_sub_ps(a.v, b.v)}; }
HEADLAB_INLINE f32x16 operator*(f32x16 a, f32x16 b) { return {_mm512_mul_ps(a.v, b.v)}; }
HEADLAB_INLINE f32x16 operator/(f32x16 a, f32x16 b) { return {_mm512_div_ps(a.v, b.v)}; }
HEADLAB_INLINE f32x16 fma(f32x16 a, f32x16 b, f32x16 c) { return {_mm512_fmadd_ps(a.v, b.v, c.v)}; }
HEADLAB_INLINE f32x16 fms(f32x16 a, f32x16 b, f32x16 c) { return {_mm512_fmsub_ps(a.v, b.v, c.v)}; }
HEADLAB_INLINE f32x16 fnma(f32x16 a, f32x16 b, f32x16 c) { return {_mm512_fnmadd_ps(a.v, b.v, c.v)}; }
/// x·factor, multiplied in f64 and rounded once: the factor may be smaller than any f32 number.
HEADLAB_INLINE f32x16 times(f32x16 x, double factor) {
  const __m512d f = _mm512_set1_pd(factor);
  const __m512d low = _mm512_mul_pd(_mm512_cvtps_pd(_mm512_castps512_ps256(x.v)), f);
  const __m512d high = _mm512_mul_pd(_mm512_cvtps_pd(_mm512_extractf32x8_ps(x.v, 1)), f);
  return {_mm512_insertf32x8(_mm512_castps256_ps512(_mm512_cvtpd_ps(low)), _mm512_cvtpd_ps(high), 1)};
}
HEADLAB_INLINE f32x16 sqrt(f32x16 x) { return {_mm512_sqrt_ps(x.v)}; }
HEADLAB_INLINE f32x16 round_to_nearest(f32x16 x) {
  return {_mm512_roundscale_ps(x.v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC)};
}

HEADLAB_INLINE mask16 operator<(f32x16 a, f32x16 b) { return {_mm512_cmp_ps_mask(a.v, b.v, _CMP_LT_OQ)}; }
HEADLAB_INLINE mask16 operator<=(f32x16 a, f32x16 b) { return {_mm512_cmp_ps_mask(a.v, b.v, _CMP_LE_OQ)}; }
HEADLAB_INLINE mask16 operator==(f32x16 a, f32x16 b) { return {_mm512_cmp_ps_mask(a.v, b.v, _CMP_EQ_OQ)}; }
HEADLAB_INLINE mask16 operator!=(f32x16 a, f32x16 b) { return {_mm512_cmp_ps_mask(a.v, b.v, _CMP_NEQ_UQ)}; }
HEADLAB_INLINE mask16 is_nan(f32x16 x) { return {_mm512_cmp_ps_mask(x.v, x.v, _CMP_UNORD_Q)}; }
HEADLAB_INLINE mask16 operator&(mask16 a, mask16 b) { return {static_cast<__mmask16>(a.v & b.v)}; }
HEADLAB_INLINE mask16 operator|(mask16 a, mask16 b) { return {static_cast<__mmask16>(a.v | b.v)}; }
HEADLAB_INLINE mask16 operator~(mask16 a) { return {static_cast<__mmask16>(~a.v)}; }
/// Bit i is lane i.
HEADLAB_INLINE unsigned bits_of(mask16 m) { return m.v; }
/// m ? a : b, lane by lane.
HEADLAB_INLINE f32x16 select(mask16 m, f32x16 a, f32x16 b) { return {_mm512_mask_blend_ps(m.v, b.v, a.v)}; }
HEADLAB_INLINE i32x16 select(mask16 m, i32x16 a, i32x16 b) {
  return {_mm512_mask_blend_epi32(m.v, b.v, a.v)};
}

/// The larger (smaller); NaN if either is NaN, unlike std::max and the bare instructions. Of +0 and -0: b.
HEADLAB_INLINE f32x16 max(f32x16 a, f32x16 b) {
  return {_mm512_mask_max_ps(a.v, _mm512_cmp_ps_mask(a.v, a.v, _CMP_ORD_Q), a.v, b.v)};
}
HEADLAB_INLINE f32x16 min(f32x16 a, f32x16 b) {
  return {_mm512_mask_min_ps(a.v, _mm512_cmp_ps_mask(a.v, a.v, _CMP_ORD_Q), a.v, b.v)};
}

HEADLAB_INLINE f32x16 as_float(i32x16 x) { return {_mm512_castsi512_ps(x.v)}; }
HEADLAB_INLINE i32x16 as_int(f32x16 x) { return {_mm512_castps_si512(x.v)}; }
/// To the nearest integer, ties to even; NaN and what does not fit become the lowest integer.
HEADLAB_INLINE i32x16 to_int(f32x16 x) { return {_mm512_cvtps_epi32(x.v)}; }
HEADLAB_INLINE f32x16 to_float(i32x16 x) { return {_mm512_cvtepi32_ps(x.v)}; }
HEADLAB_INLINE i32x16 operator+(i32x16 a, i32x16 b) { return {_mm512_add_epi32(a.v, b.v)}; }
HEADLAB_INLINE i32x16 operator-(i32x16 a, i32x16 b) { return {_mm512_sub_epi32(a.v, b.v)}; }
HEADLAB_INLINE i32x16 operator&(i32x16 a, i32x16 b) { return {_mm512_and_si512(a.v, b.v)}; }
HEADLAB_INLINE i32x16 operator|(i32x16 a, i32x16 b) { return {_mm512_or_si512(a.v, b.v)}; }
HEADLAB_INLINE i32x16 operator^(i32x16 a, i32x16 b) { return {_mm512_xor_si512(a.v, b.v)}; }
HEADLAB_INLINE mask16 operator<(i32x16 a, i32x16 b) { return {_mm512_cmplt_epi32_mask(a.v, b.v)}; }
HEADLAB_INLINE mask16 operator==(i32x16 a, i32x16 b) { return {_mm512_cmpeq_epi32_mask(a.v, b.v)}; }
/// The low and the high halves of the 64-bit products of unsigned lanes.
HEADLAB_INLINE void multiply_wide(i32x16 a, i32x16 b, i32x16& low, i32x16& high) {
  const __m512i even = _mm512_mul_epu32(a.v, b.v);
  const __m512i odd = _mm512_mul_epu32(_mm512_srli_epi64(a.v, 32), _mm512_srli_epi64(b.v, 32));
  low = {_mm512_mask_blend_epi32(0xAAAA, even, _mm512_slli_epi64(odd, 32))};
  high = {_mm512_mask_blend_epi32(0xAAAA, _mm512_srli_epi64(even, 32), odd)};
}
template <int count>
HEADLAB_INLINE i32x16 shift_left(i32x16 x) {
  return {_mm512_slli_epi32(x.v, count)};
}
template <int count>
HEADLAB_INLINE i32x16 shift_right_arithmetic(i32x16 x) {
  return {_mm512_srai_epi32(x.v, count)};
}
template <int count>
HEADLAB_INLINE i32x16 shift_right_logical(i32x16 x) {
  return {_mm512_srli_epi32(x.v, count)};
}

/// Eight f64 sums; add_squares adds (factor·p[i])² to the i-th, each operation rounded by itself.
struct f64x8 {
  __m512d v = _mm512_setzero_pd();
};
HEADLAB_INLINE void add_squares(f64x8& sums, const float* p, double factor) {
  const __m512d x = _mm512_mul_pd(_mm512_set1_pd(factor), _mm512_cvtps_pd(_mm256_loadu_ps(p)));
  sums.v = _mm512_add_pd(sums.v, _mm512_mul_pd(x, x));
}
HEADLAB_INLINE void store(double* p, f64x8 x) { _mm512_storeu_pd(p, x.v); }

namespace detail {
HEADLAB_INLINE __m256 low_half(f32x16 x) { return _mm512_castps512_ps256(x.v); }
HEADLAB_INLINE __m256 high_half(f32x16 x) { return _mm512_extractf32x8_ps(x.v, 1); }
}  // namespace detail

#else  // AVX2

struct f32x16 {
  __m256 lo, hi;
};
struct i32x16 {
  __m256i lo, hi;
};
struct mask16 {
  __m256 lo, hi;  // all bits of a lane, or none
};

HEADLAB_INLINE f32x16 broadcast(float x) { return {_mm256_set1_ps(x), _mm256_set1_ps(x)}; }
HEADLAB_INLINE i32x16 broadcast_int(std::int32_t x) { return {_mm256_set1_epi32(x), _mm256_set1_epi32(x)}; }
HEADLAB_INLINE f32x16 load(const float* p) { return {_mm256_loadu_ps(p), _mm256_loadu_ps(p + 8)}; }
HEADLAB_INLINE i32x16 load_int(const std::int32_t* p) {
  return {_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)),
          _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p + 8))};
}
HEADLAB_INLINE void store(float* p, f32x16 x) {
  _mm256_storeu_ps(p, x.lo);
  _mm256_storeu_ps(p + 8, x.hi);
}
HEADLAB_INLINE void store_int(std::int32_t* p, i32x16 x) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), x.lo);
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p + 8), x.hi);
}

HEADLAB_INLINE mask16 first_lanes(std::int64_t count) {
  const std::int64_t n = count < 0 ? 0 : count > lanes ? lanes : count;
  const __m256i end = _mm256_set1_epi32(static_cast<int>(n));
  return {_mm256_castsi256_ps(_mm256_cmpgt_epi32(end, _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7))),
          _mm256_castsi256_ps(_mm256_cmpgt_epi32(end, _mm256_setr_epi32(8, 9, 10, 11, 12, 13, 14, 15)))};
}
HEADLAB_INLINE f32x16 load_masked(const float* p, mask16 m, float fill) {
  const __m256 lo = _mm256_maskload_ps(p, _mm256_castps_si256(m.lo));
  const __m256 hi = _mm256_maskload_ps(p + 8, _mm256_castps_si256(m.hi));
  const __m256 f = _mm256_set1_ps(fill);
  return {_mm256_blendv_ps(f, lo, m.lo), _mm256_blendv_ps(f, hi, m.hi)};
}
HEADLAB_INLINE void store_masked(float* p, f32x16 x, mask16 m) {
  _mm256_maskstore_ps(p, _mm256_castps_si256(m.lo), x.lo);
  _mm256_maskstore_ps(p + 8, _mm256_castps_si256(m.hi), x.hi);
}
HEADLAB_INLINE void store_low_masked(float* p, f32x16 x, mask16 m) {
  _mm256_maskstore_ps(p, _mm256_castps_si256(m.lo), x.lo);
}

HEADLAB_INLINE f32x16 operator+(f32x16 a, f32x16 b) {
  return {_mm256_add_ps(a.lo, b.lo), _mm256_add_ps(a.hi, b.hi)};
}
HEADLAB_INLINE f32x16 operator-(f32x16 a, f32x16 b) {
  return {_mm256_sub_ps(a.lo, b.lo), _mm256_sub_ps(a.hi, b.hi)};
}
HEADLAB_INLINE f32x16 operator*(f32x16 a, f32x16 b) {
  return {_mm256_mul_ps(a.lo, b.lo), _mm256_mul_ps(a.hi, b.hi)};
}
HEADLAB_INLINE f32x16 operator/(f32x16 a, f32x16 b) {
  return {_mm256_div_ps(a.lo, b.lo), _mm256_div_ps(a.hi, b.hi)};
}
HEADLAB_INLINE f32x16 fma(f32x16 a, f32x16 b, f32x16 c) {
  return {_mm256_fmadd_ps(a.lo, b.lo, c.lo), _mm256_fmadd_ps(a.hi, b.hi, c.hi)};
}
HEADLAB_INLINE f32x16 fms(f32x16 a, f32x16 b, f32x16 c) {
  return {_mm256_fmsub_ps(a.lo, b.lo, c.lo), _mm256_fmsub_ps(a.hi, b.hi, c.hi)};
}
HEADLAB_INLINE f32x16 fnma(f32x16 a, f32x16 b, f32x16 c) {
  return {_mm256_fnmadd_ps(a.lo, b.lo, c.lo), _mm256_fnmadd_ps(a.hi, b.hi, c.hi)};
}
namespace detail {
HEADLAB_INLINE __m256 times(__m256 x, __m256d factor) {
  const __m256d low = _mm256_mul_pd(_mm256_cvtps_pd(_mm256_castps256_ps128(x)), factor);
  const __m256d high = _mm256_mul_pd(_mm256_cvtps_pd(_mm256_extractf128_ps(x, 1)), factor);
  return _mm256_set_m128(_mm256_cvtpd_ps(high), _mm256_cvtpd_ps(low));
}
}  // namespace detail
HEADLAB_INLINE f32x16 times(f32x16 x, double factor) {
  const __m256d f = _mm256_set1_pd(factor);
  return {detail::times(x.lo, f), detail::times(x.hi, f)};
}

struct f64x8 {
  __m256d lo = _mm256_setzero_pd(), hi = _mm256_setzero_pd();
};
HEADLAB_INLINE void add_squares(f64x8& sums, const float* p, double factor) {
  const __m256d f = _mm256_set1_pd(factor);
  const __m256d low = _mm256_mul_pd(f, _mm256_cvtps_pd(_mm_loadu_ps(p)));
  const __m256d high = _mm256_mul_pd(f, _mm256_cvtps_pd(_mm_loadu_ps(p + 4)));
  sums.lo = _mm256_add_pd(sums.lo, _mm256_mul_pd(low, low));
  sums.hi = _mm256_add_pd(sums.hi, _mm256_mul_pd(high, high));
}
HEADLAB_INLINE void store(double* p, f64x8 x) {
  _mm256_storeu_pd(p, x.lo);
  _mm256_storeu_pd(p + 4, x.hi);
}
HEADLAB_INLINE f32x16 sqrt(f32x16 x) { return {_mm256_sqrt_ps(x.lo), _mm256_sqrt_ps(x.hi)}; }
HEADLAB_INLINE f32x16 round_to_nearest(f32x16 x) {
  return {_mm256_round_ps(x.lo, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC),
          _mm256_round_ps(x.hi, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC)};
}

HEADLAB_INLINE mask16 operator<(f32x16 a, f32x16 b) {
  return {_mm256_cmp_ps(a.lo, b.lo, _CMP_LT_OQ), _mm256_cmp_ps(a.hi, b.hi, _CMP_LT_OQ)};
}
HEADLAB_INLINE mask16 operator<=(f32x16 a, f32x16 b) {
  return {_mm256_cmp_ps(a.lo, b.lo, _CMP_LE_OQ), _mm256_cmp_ps(a.hi, b.hi, _CMP_LE_OQ)};
}
HEADLAB_INLINE mask16 operator==(f32x16 a, f32x16 b) {
  return {_mm256_cmp_ps(a.lo, b.lo, _CMP_EQ_OQ), _mm256_cmp_ps(a.hi, b.hi, _CMP_EQ_OQ)};
}
HEADLAB_INLINE mask16 operator!=(f32x16 a, f32x16 b) {
  return {_mm256_cmp_ps(a.lo, b.lo, _CMP_NEQ_UQ), _mm256_cmp_ps(a.hi, b.hi, _CMP_NEQ_UQ)};
}
HEADLAB_INLINE mask16 is_nan(f32x16 x) {
  return {_mm256_cmp_ps(x.lo, x.lo, _CMP_UNORD_Q), _mm256_cmp_ps(x.hi, x.hi, _CMP_UNORD_Q)};
}
HEADLAB_INLINE mask16 operator&(mask16 a, mask16 b) {
  return {_mm256_and_ps(a.lo, b.lo), _mm256_and_ps(a.hi, b.hi)};
}
HEADLAB_INLINE mask16 operator|(mask16 a, mask16 b) {
  return {_mm256_or_ps(a.lo, b.lo), _mm256_or_ps(a.hi, b.hi)};
}
HEADLAB_INLINE mask16 operator~(mask16 a) {
  const __m256 all = _mm256_castsi256_ps(_mm256_set1_epi32(-1));
  return {_mm256_xor_ps(a.lo, all), _mm256_xor_ps(a.hi, all)};
}
HEADLAB_INLINE unsigned bits_of(mask16 m) {
  return static_cast<unsigned>(_mm256_movemask_ps(m.lo)) | static_cast<unsigned>(_mm256_movemask_ps(m.hi))
                                                               << 8U;
}
HEADLAB_INLINE f32x16 select(mask16 m, f32x16 a, f32x16 b) {
  return {_mm256_blendv_ps(b.lo, a.lo, m.lo), _mm256_blendv_ps(b.hi, a.hi, m.hi)};
}

HEADLAB_INLINE f32x16 max(f32x16 a, f32x16 b) {  // the instruction gives b where either is NaN
  return select(is_nan(a), a, {_mm256_max_ps(a.lo, b.lo), _mm256_max_ps(a.hi, b.hi)});
}
HEADLAB_INLINE f32x16 min(f32x16 a, f32x16 b) {
  return select(is_nan(a), a, {_mm256_min_ps(a.lo, b.lo), _mm256_min_ps(a.hi, b.hi)});
}

HEADLAB_INLINE f32x16 as_float(i32x16 x) { return {_mm256_castsi256_ps(x.lo), _mm256_castsi256_ps(x.hi)}; }
HEADLAB_INLINE i32x16 as_int(f32x16 x) { return {_mm256_castps_si256(x.lo), _mm256_castps_si256(x.hi)}; }
HEADLAB_INLINE i32x16 to_int(f32x16 x) { return {_mm256_cvtps_epi32(x.lo), _mm256_cvtps_epi32(x.hi)}; }
HEADLAB_INLINE f32x16 to_float(i32x16 x) { return {_mm256_cvtepi32_ps(x.lo), _mm256_cvtepi32_ps(x.hi)}; }
HEADLAB_INLINE i32x16 select(mask16 m, i32x16 a, i32x16 b) {
  return as_int(select(m, as_float(a), as_float(b)));
}
HEADLAB_INLINE i32x16 operator+(i32x16 a, i32x16 b) {
  return {_mm256_add_epi32(a.lo, b.lo), _mm256_add_epi32(a.hi, b.hi)};
}
HEADLAB_INLINE i32x16 operator-(i32x16 a, i32x16 b) {
  return {_mm256_sub_epi32(a.lo, b.lo), _mm256_sub_epi32(a.hi, b.hi)};
}
HEADLAB_INLINE i32x16 operator&(i32x16 a, i32x16 b) {
  return {_mm256_and_si256(a.lo, b.lo), _mm256_and_si256(a.hi, b.hi)};
}
HEADLAB_INLINE i32x16 operator|(i32x16 a, i32x16 b) {
  return {_mm256_or_si256(a.lo, b.lo), _mm256_or_si256(a.hi, b.hi)};
}
HEADLAB_INLINE i32x16 operator^(i32x16 a, i32x16 b) {
  return {_mm256_xor_si256(a.lo, b.lo), _mm256_xor_si256(a.hi, b.hi)};
}
HEADLAB_INLINE mask16 operator<(i32x16 a, i32x16 b) {
  return {_mm256_castsi256_ps(_mm256_cmpgt_epi32(b.lo, a.lo)),
          _mm256_castsi256_ps(_mm256_cmpgt_epi32(b.hi, a.hi))};
}
HEADLAB_INLINE mask16 operator==(i32x16 a, i32x16 b) {
  return {_mm256_castsi256_ps(_mm256_cmpeq_epi32(a.lo, b.lo)),
          _mm256_castsi256_ps(_mm256_cmpeq_epi32(a.hi, b.hi))};
}
namespace detail {
HEADLAB_INLINE void multiply_wide(__m256i a, __m256i b, __m256i& low, __m256i& high) {
  const __m256i even = _mm256_mul_epu32(a, b);
  const __m256i odd = _mm256_mul_epu32(_mm256_srli_epi64(a, 32), _mm256_srli_epi64(b, 32));
  low = _mm256_blend_epi32(even, _mm256_slli_epi64(odd, 32), 0xAA);
  high = _mm256_blend_epi32(_mm256_srli_epi64(even, 32), odd, 0xAA);
}
}  // namespace detail
HEADLAB_INLINE void multiply_wide(i32x16 a, i32x16 b, i32x16& low, i32x16& high) {
  detail::multiply_wide(a.lo, b.lo, low.lo, high.lo);
  detail::multiply_wide(a.hi, b.hi, low.hi, high.hi);
}
template <int count>
HEADLAB_INLINE i32x16 shift_left(i32x16 x) {
  return {_mm256_slli_epi32(x.lo, count), _mm256_slli_epi32(x.hi, count)};
}
template <int count>
HEADLAB_INLINE i32x16 shift_right_arithmetic(i32x16 x) {
  return {_mm256_srai_epi32(x.lo, count), _mm256_srai_epi32(x.hi, count)};
}
template <int count>
HEADLAB_INLINE i32x16 shift_right_logical(i32x16 x) {
  return {_mm256_srli_epi32(x.lo, count), _mm256_srli_epi32(x.hi, count)};
}

namespace detail {
HEADLAB_INLINE __m256 low_half(f32x16 x) { return x.lo; }
HEADLAB_INLINE __m256 high_half(f32x16 x) { return x.hi; }
}  // namespace detail

#endif

// What follows is written once.

HEADLAB_INLINE f32x16 zero() { return broadcast(0.0F); }
HEADLAB_INLINE f32x16 load_masked(const float* p, std::int64_t count, float fill) {
  return load_masked(p, first_lanes(count), fill);
}
HEADLAB_INLINE void store_masked(float* p, f32x16 x, std::int64_t count) {
  store_masked(p, x, first_lanes(count));
}
HEADLAB_INLINE mask16 operator>(f32x16 a, f32x16 b) { return b < a; }
HEADLAB_INLINE mask16 operator>=(f32x16 a, f32x16 b) { return b <= a; }
HEADLAB_INLINE bool any(mask16 m) { return bits_of(m) != 0; }
HEADLAB_INLINE bool all(mask16 m) { return bits_of(m) == 0xFFFFU; }

/// The sign bit alone, for NaN and zero too.
HEADLAB_INLINE f32x16 sign_bit(f32x16 x) { return as_float(as_int(x) & broadcast_int(INT32_MIN)); }
HEADLAB_INLINE f32x16 flip_sign(f32x16 x, f32x16 sign) { return as_float(as_int(x) ^ as_int(sign)); }
HEADLAB_INLINE f32x16 operator-(f32x16 x) { return as_float(as_int(x) ^ broadcast_int(INT32_MIN)); }
HEADLAB_INLINE f32x16 abs(f32x16 x) { return as_float(as_int(x) & broadcast_int(INT32_MAX)); }
HEADLAB_INLINE f32x16 copy_sign(f32x16 magnitude, f32x16 sign) {
  return as_float(as_int(abs(magnitude)) | as_int(sign_bit(sign)));
}

namespace detail {
HEADLAB_INLINE __m128 max4(__m128 a, __m128 b) {
  return _mm_blendv_ps(_mm_max_ps(a, b), a, _mm_cmpunord_ps(a, a));
}
}  // namespace detail

/// The sum of the lanes, folded in one fixed order: lane i with i+8, then +4, +2, +1.
HEADLAB_INLINE float horizontal_sum(f32x16 x) {
  const __m256 eight = _mm256_add_ps(detail::low_half(x), detail::high_half(x));
  const __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
  const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
}
/// The largest lane; NaN if any is NaN.
HEADLAB_INLINE float horizontal_max(f32x16 x) {
  const __m256 low = detail::low_half(x), high = detail::high_half(x);
  const __m256 eight = _mm256_blendv_ps(_mm256_max_ps(low, high), low, _mm256_cmp_ps(low, low, _CMP_UNORD_Q));
  const __m128 four = detail::max4(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
  const __m128 two = detail::max4(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(detail::max4(two, _mm_movehdup_ps(two)));
}

namespace detail {
/// Up to four floats, the missing ones zero.
HEADLAB_INLINE __m128 load_four(const float* p, std::int64_t count) {
  if (count >= 4) return _mm_loadu_ps(p);
  return _mm_maskload_ps(
      p, _mm_cmpgt_epi32(_mm_set1_epi32(static_cast<int>(count)), _mm_setr_epi32(0, 1, 2, 3)));
}
#if HEADLAB_AVX512
using Wide = __m512;
/// Four columns of rows i, i + 4, i + 8, i + 12, side by side.
template <class Row>
HEADLAB_INLINE Wide load_fours(const Row& row, int i, std::int64_t column, std::int64_t count) {
  Wide x = _mm512_castps128_ps512(load_four(row(i) + column, count));
  x = _mm512_insertf32x4(x, load_four(row(i + 4) + column, count), 1);
  x = _mm512_insertf32x4(x, load_four(row(i + 8) + column, count), 2);
  return _mm512_insertf32x4(x, load_four(row(i + 12) + column, count), 3);
}
HEADLAB_INLINE Wide unpack_low(Wide a, Wide b) { return _mm512_unpacklo_ps(a, b); }
HEADLAB_INLINE Wide unpack_high(Wide a, Wide b) { return _mm512_unpackhi_ps(a, b); }
template <int order>
HEADLAB_INLINE Wide shuffle(Wide a, Wide b) {
  return _mm512_shuffle_ps(a, b, order);
}
HEADLAB_INLINE void store_wide(float* p, Wide x) { _mm512_storeu_ps(p, x); }
#else
using Wide = __m256;
template <class Row>
HEADLAB_INLINE Wide load_fours(const Row& row, int i, std::int64_t column, std::int64_t count) {
  return _mm256_insertf128_ps(_mm256_castps128_ps256(load_four(row(i) + column, count)),
                              load_four(row(i + 4) + column, count), 1);
}
HEADLAB_INLINE Wide unpack_low(Wide a, Wide b) { return _mm256_unpacklo_ps(a, b); }
HEADLAB_INLINE Wide unpack_high(Wide a, Wide b) { return _mm256_unpackhi_ps(a, b); }
template <int order>
HEADLAB_INLINE Wide shuffle(Wide a, Wide b) {
  return _mm256_shuffle_ps(a, b, order);
}
HEADLAB_INLINE void store_wide(float* p, Wide x) { _mm256_storeu_ps(p, x); }
#endif
template <class Row>
HEADLAB_INLINE void transpose_columns(const Row& row, std::int64_t column, std::int64_t count, float* to,
                                      std::int64_t to_step) {
  const Wide r0 = load_fours(row, 0, column, count), r1 = load_fours(row, 1, column, count);
  const Wide r2 = load_fours(row, 2, column, count), r3 = load_fours(row, 3, column, count);
  const Wide a = unpack_low(r0, r1), b = unpack_high(r0, r1), c = unpack_low(r2, r3), d = unpack_high(r2, r3);
  store_wide(to, shuffle<0x44>(a, c));
  if (count > 1) store_wide(to + to_step, shuffle<0xEE>(a, c));
  if (count > 2) store_wide(to + 2 * to_step, shuffle<0x44>(b, d));
  if (count > 3) store_wide(to + 3 * to_step, shuffle<0xEE>(b, d));
}
template <class Row>
HEADLAB_INLINE void transpose_all(const Row& row, std::int64_t columns, float* to, std::int64_t to_step) {
  std::int64_t column = 0;
  for (; column + 4 <= columns; column += 4)
    transpose_columns(row, column, 4, to + column * to_step, to_step);
  if (column < columns) transpose_columns(row, column, columns - column, to + column * to_step, to_step);
}
}  // namespace detail

/// The most rows that transpose() takes.
constexpr std::int64_t transpose_rows = sizeof(detail::Wide) / sizeof(float);

/// to[j·to_step + i] = from[i·from_step + j] for i < rows (1 … transpose_rows) and j < columns, in registers.
/// Rows of `to` are written whole, transpose_rows lanes each, in ascending order: lanes past `rows` hold
/// something from the last row, and may be overwritten by the next row of `to`.
inline void transpose(const float* from, std::int64_t from_step, std::int64_t rows, std::int64_t columns,
                      float* to, std::int64_t to_step) {
  if (rows == transpose_rows) {
    detail::transpose_all([=](std::int64_t i) { return from + i * from_step; }, columns, to, to_step);
  } else {
    const float* row[transpose_rows];
    for (std::int64_t i = 0; i < transpose_rows; ++i) row[i] = from + (i < rows ? i : rows - 1) * from_step;
    detail::transpose_all([&](std::int64_t i) { return row[i]; }, columns, to, to_step);
  }
}

}  // namespace headlab::kernels
