#include "framework/ops/attention.h"

#include <memory>
#include <vector>

#include "framework/autograd/node.h"
#include "framework/kernels/reduce.h"
#include "framework/kernels/streaming_attention.h"
#include "framework/ops/attention_sizes.h"
#include "framework/ops/attention_telemetry.h"

namespace headlab {

namespace {

using Sizes = detail::AttentionSizes;

/// Keys that each query may see, as a range; masks that no range can hold come on top of it.
struct Ranges {
  std::vector<std::int32_t> first, last;  // [examples, n_q]
  std::int64_t example = 0;

  Ranges(const ResolvedMask& mask, const Sizes& s) {
    if (mask.blocks_nothing()) return;
    const std::int64_t examples = mask.same_for_all_examples() ? std::min<std::int64_t>(s.batch, 1) : s.batch;
    example = examples < s.batch ? 0 : s.n_q;
    first.reserve(static_cast<std::size_t>(examples * s.n_q));
    last.reserve(static_cast<std::size_t>(examples * s.n_q));
    for (std::int64_t b = 0; b < examples; ++b) {
      for (std::int64_t i = 0; i < s.n_q; ++i) {
        const ResolvedMask::Row row = mask.row(b, 0, i);
        first.push_back(static_cast<std::int32_t>(row.first));
        last.push_back(static_cast<std::int32_t>(row.last));
      }
    }
  }
};

/// Everything about a call that forward and backward share.
struct Call {
  Sizes sizes;
  ResolvedMask mask;
  Ranges ranges;
  double softcap, dropout;
  DropoutKey dropout_key;
  bool packed;

  Call(const AttentionOptions& o, const Sizes& s, bool is_packed)
      : sizes(s),
        mask(o.mask, s.batch, s.heads, s.n_q, s.n_k, "attention"),
        ranges(mask, s),
        softcap(o.softcap),
        dropout(o.dropout),
        dropout_key(o.dropout_key),
        packed(is_packed) {}
};

template <class T>
struct Inputs {
  kernels::HeadRows<T> q, k, v;
};
/// Where q, k, v (and likewise their gradients) lie: in three arrays, or in one.
template <class T, class A>
Inputs<T> inputs_of(std::span<A> arrays, const Call& call) {
  const Sizes& s = call.sizes;
  using Number = std::remove_const_t<T>;
  if (call.packed) {
    T* qkv = arrays[0].template data<Number>();
    const std::int64_t row = (s.heads + 2 * s.kv_heads) * s.d_k;
    const std::int64_t batch = s.n_q * row;
    return {{qkv, batch, row, s.d_k},
            {qkv + s.heads * s.d_k, batch, row, s.d_k},
            {qkv + (s.heads + s.kv_heads) * s.d_k, batch, row, s.d_v}};
  }
  const std::int64_t q = s.heads * s.d_k, k = s.kv_heads * s.d_k, v = s.kv_heads * s.d_v;
  return {{arrays[0].template data<Number>(), s.n_q * q, q, s.d_k},
          {arrays[1].template data<Number>(), s.n_k * k, k, s.d_k},
          {arrays[2].template data<Number>(), s.n_k * v, v, s.d_v}};
}

template <class T>
kernels::HeadRows<T> contexts(T* data, const Sizes& s) {
  return {data, s.n_q * s.heads * s.d_v, s.heads * s.d_v, s.d_v};
}

template <class T>
kernels::AttentionProblem<T> problem_of(const Call& call, const Inputs<const T>& in, const Array& offset_bias,
                                        const Array& sink) {
  const Sizes& s = call.sizes;
  kernels::AttentionProblem<T> p{.batch = s.batch,
                                 .heads = s.heads,
                                 .kv_heads = s.kv_heads,
                                 .n_q = s.n_q,
                                 .n_k = s.n_k,
                                 .d_k = s.d_k,
                                 .d_v = s.d_v,
                                 .q = in.q,
                                 .k = in.k,
                                 .v = in.v,
                                 .scale = static_cast<T>(s.scale),
                                 .softcap = static_cast<T>(call.softcap),
                                 .offset_bias = offset_bias ? offset_bias.data<T>() : nullptr,
                                 .sink = sink ? sink.data<T>() : nullptr,
                                 .mask = {},
                                 .dropout = call.dropout,
                                 .dropout_key = call.dropout_key};
  if (!call.ranges.first.empty()) {
    p.mask.first = call.ranges.first.data();
    p.mask.last = call.ranges.last.data();
    p.mask.range_example = call.ranges.example;
  }
  // [B or 1, heads or 1, n_q, n_k]: an axis of 1 serves all.
  const auto steps = [](const Shape& shape, std::int64_t& example, std::int64_t& head) {
    head = shape[1] == 1 ? 0 : shape[2] * shape[3];
    example = shape[0] == 1 ? 0 : shape[1] * shape[2] * shape[3];
  };
  if (const Array& allow = call.mask.allow()) {
    p.mask.allow = allow.data<std::uint8_t>();
    steps(allow.shape(), p.mask.allow_example, p.mask.allow_head);
  }
  if (const Array& valid = call.mask.valid()) p.mask.valid = valid.data<std::uint8_t>();
  if (const Array& bias = call.mask.bias()) {
    p.mask.bias = bias.data<T>();
    steps(bias.shape(), p.mask.bias_example, p.mask.bias_head);
  }
  return p;
}

AttentionResult run(std::vector<Tensor> inputs, const Sizes& s, const AttentionOptions& o) {
  const DType dtype = inputs[0].dtype();
  const auto call = std::make_shared<const Call>(o, s, inputs.size() == 1);
  Array out({s.batch, s.n_q, s.heads * s.d_v}, dtype);
  Array log_sum_exp({s.batch, s.heads, s.n_q}, dtype);
  std::vector<Array> values;
  for (const Tensor& input : inputs) values.push_back(input.value());
  AttentionResult result;

  dispatch(dtype, "attention", [&](auto zero) {
    using T = decltype(zero);
    const auto in = inputs_of<const T>(std::span<const Array>(values), *call);
    const auto p = problem_of<T>(*call, in, o.offset_bias ? o.offset_bias.value() : Array(),
                                 o.sink ? o.sink.value() : Array());
    const auto to = contexts(out.data<T>(), s);
    if (o.telemetry) {
      detail::TelemetryCollector<T> collector(*o.telemetry, s.batch, s.heads, s.n_q, s.n_k);
      kernels::streaming_attention(p, to, log_sum_exp.data<T>(), &collector.request());
      result.telemetry = collector.finish();
    } else {
      kernels::streaming_attention<T>(p, to, log_sum_exp.data<T>());
    }
  });

  const std::size_t qkv = inputs.size();
  std::vector<Saved> saved;
  for (const Tensor& input : inputs) saved.emplace_back(input, "attention");
  const auto also = [&](const Tensor& x) {
    if (x) inputs.push_back(x);
    return x ? inputs.size() - 1 : std::size_t{0};
  };
  const Tensor bias = o.mask.bias();
  const std::size_t bias_at = also(bias), offset_at = also(o.offset_bias), sink_at = also(o.sink);
  const Saved offset_bias = o.offset_bias ? Saved(o.offset_bias, "attention") : Saved();
  const Saved saved_bias = bias ? Saved(bias, "attention") : Saved();
  const Saved sink = o.sink ? Saved(o.sink, "attention") : Saved();
  const Shape bias_shape = bias ? bias.shape() : Shape{};

  const auto closure = [=](const Array& dy, Sinks dx) {
    const Sizes& sizes = call->sizes;
    std::vector<Array> in_values, gradients;
    for (const Saved& input : saved) {
      in_values.push_back(input.get());
      gradients.emplace_back(input.get().shape(), dtype);
    }
    if (bias_at > 0) saved_bias.get();  // an error when it was changed meanwhile
    Array dscores, doffset, dsink;
    if (bias_at > 0 && dx[bias_at]) dscores = Array({sizes.batch, sizes.heads, sizes.n_q, sizes.n_k}, dtype);
    if (offset_at > 0 && dx[offset_at]) doffset = Array(offset_bias.get().shape(), dtype);
    if (sink_at > 0 && dx[sink_at]) dsink = Array(sink.get().shape(), dtype);
    dispatch(dtype, "attention", [&](auto zero) {
      using T = decltype(zero);
      const auto in = inputs_of<const T>(std::span<const Array>(in_values), *call);
      const auto p = problem_of<T>(*call, in, offset_at > 0 ? offset_bias.get() : Array(),
                                   sink_at > 0 ? sink.get() : Array());
      const auto d = inputs_of<T>(std::span<Array>(gradients), *call);
      kernels::streaming_attention_backward<T>(p, contexts(out.template data<T>(), sizes),
                                               log_sum_exp.template data<T>(),
                                               contexts(dy.template data<T>(), sizes),
                                               {.q = d.q,
                                                .k = d.k,
                                                .v = d.v,
                                                .scores = dscores ? dscores.template data<T>() : nullptr,
                                                .offset_bias = doffset ? doffset.template data<T>() : nullptr,
                                                .sink = dsink ? dsink.template data<T>() : nullptr});
    });
    for (std::size_t i = 0; i < qkv; ++i) {
      if (dx[i]) dx[i].add(std::move(gradients[i]));
    }
    if (dscores) dx[bias_at].add(kernels::sum_to(dscores, bias_shape));
    if (doffset) dx[offset_at].add(std::move(doffset));
    if (dsink) dx[sink_at].add(std::move(dsink));
  };
  result.out = record("attention", out, std::span<const Tensor>(inputs), closure, Keeps::output);
  return result;
}

}  // namespace

AttentionResult attention(const Tensor& q, const Tensor& k, const Tensor& v,
                          const AttentionOptions& options) {
  return run({q, k, v}, detail::check_attention(q, k, v, options), options);
}

AttentionResult attention(const Tensor& qkv, const AttentionOptions& options) {
  return run({qkv}, detail::check_attention(qkv, options), options);
}

}  // namespace headlab
