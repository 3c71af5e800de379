#pragma once
#include "framework/kernels/streaming_attention.h"
#include "framework/ops/telemetry.h"
namespace headlab {
template <class T>
class TelemetryCollector {
 public:
  TelemetryCollector(const TelemetryOptions&, std::int64_t, std::int64_t, std::int64_t, std::int64_t) {}
  const kernels::TelemetryRequest<T>& request() const { return request_; }
  Telemetry finish() { return {}; }
 private:
  kernels::TelemetryRequest<T> request_;
};
}
