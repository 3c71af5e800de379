// Functions of one number applied to arrays. f32 by our own polynomials on sixteen lanes (the same bits on
// every machine), f64 by libm. A finite argument never gives NaN where the function is defined; NaN stays
// NaN.
#pragma once

#include <cstdint>

namespace headlab::kernels {

// The functions, as tags. `keeps_output`: the derivative is cheapest from the value y, not the argument x.
struct Exp {
  static constexpr bool keeps_output = true;
};
struct Log {
  static constexpr bool keeps_output = false;
};
struct Sqrt {
  static constexpr bool keeps_output = true;
};
/// max(x, 0); the derivative at 0 is 0.
struct Relu {
  static constexpr bool keeps_output = true;
};
/// x σ(x)
struct Silu {
  static constexpr bool keeps_output = false;
};
/// σ(x) = 1 / (1 + e^-x)
struct Sigmoid {
  static constexpr bool keeps_output = true;
};
struct Tanh {
  static constexpr bool keeps_output = true;
};
/// log(1 + e^x)
struct Softplus {
  static constexpr bool keeps_output = false;
};
/// x/2 (1 + tanh(√(2/π) (x + 0.044715 x³))): Hendrycks and Gimpel 2016, the tanh form.
struct Gelu {
  static constexpr bool keeps_output = false;
};
/// x/2 (1 + erf(x/√2))
struct GeluExact {
  static constexpr bool keeps_output = false;
};

/// y[i] = f(x[i]). T is float or double. x and y may be the same array.
template <class Function, class T>
void apply(const T* x, T* y, std::int64_t n);

/// dx[i] = [dx[i] +] dy[i] f'(x[i]), where `kept` is y for functions with keeps_output and x for the others.
template <class Function, class T>
void apply_backward(const T* kept, const T* dy, T* dx, std::int64_t n, bool accumulate);

}  // namespace headlab::kernels
