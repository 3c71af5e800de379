// Cross entropy of rows of scores against target classes, and the sum of squared differences.
#pragma once

#include <cstdint>

namespace headlab::kernels {

/// Rows of scores [rows, classes] and the class each should have. A target equal to `ignored` does not count;
/// all others are in 0 … classes-1 (unchecked). With smoothing e the wanted distribution is
/// q_j = (1 - e)·[j = target] + e/classes.
struct Scores {
  std::int64_t rows = 0;
  std::int64_t classes = 0;
  const std::int64_t* targets = nullptr;
  std::int64_t ignored = -1;
  double smoothing = 0;
};

/// loss[i] = -Σ_j q_j·log softmax(x[i])_j, 0 where ignored; top[i] = max x[i] and log_sum[i] = log Σ exp(x[i]
/// - top[i]) are kept for backward (apart, since their sum would lose digits of scores far from 0). Reads the
/// scores once. Right for any finite scores.
void cross_entropy(const float* x, Scores scores, float* loss, float* top, float* log_sum);
void cross_entropy(const double* x, Scores scores, double* loss, double* top, double* log_sum);

/// dx (+)= scale·(softmax(x) - q), 0 where ignored. dx may be x.
void cross_entropy_backward(const float* x, Scores scores, const float* top, const float* log_sum,
                            float scale, float* dx, bool accumulate);
void cross_entropy_backward(const double* x, Scores scores, const double* top, const double* log_sum,
                            double scale, double* dx, bool accumulate);

/// Σ (a - b)², chunks of a fixed size added in order.
double squared_distance(const float* a, const float* b, std::int64_t n);
double squared_distance(const double* a, const double* b, std::int64_t n);
/// out (+)= scale·(a - b).
void scaled_difference(const float* a, const float* b, float scale, float* out, std::int64_t n,
                       bool accumulate);
void scaled_difference(const double* a, const double* b, double scale, double* out, std::int64_t n,
                       bool accumulate);

}  // namespace headlab::kernels
