#include "framework/ops/attention.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "framework/autograd/node.h"
#include "framework/core/parallel.h"
#include "framework/kernels/finite.h"
#include "framework/kernels/gemm.h"
#include "framework/kernels/masked_softmax.h"
#include "framework/kernels/reduce.h"
#include "framework/ops/shaping.h"

namespace headlab {

namespace {

using kernels::Transpose;

struct Sizes {
  std::int64_t batch, heads, kv_heads, n_q, n_k, d_k, d_v;
  std::int64_t scores() const { return n_q * n_k; }
  std::int64_t group() const { return heads / kv_heads; }
  Cost cost_of_a_head() const {
    const auto products = static_cast<double>(scores() * (d_k + d_v));
    return {.flops = 2 * products + 30 * static_cast<double>(scores()),
            .bytes = 8 * static_cast<double>(scores())};
  }
};

/// Heads side by side in rows: head i of example b starts at data + b·batch + i·width, its rows are `row`
/// apart.
template <class T>
struct Heads {
  T* data;
  std::int64_t batch, row, width;
  T* at(std::int64_t b, std::int64_t i) const { return data + b * batch + i * width; }
};
template <class T>
Heads<T> heads_of(T* data, std::int64_t rows, std::int64_t row, std::int64_t width) {
  return {data, rows * row, row, width};
}

template <class T>
kernels::ScoreRow<T> score_row(const ResolvedMask& mask, const T* bias, double scale, std::int64_t b,
                               std::int64_t h, std::int64_t i) {
  const ResolvedMask::Row row = mask.row(b, h, i);
  return {row.first,
          row.last,
          row.allow,
          row.valid,
          row.bias < 0 ? nullptr : bias + row.bias,
          static_cast<T>(scale)};
}

// out[i] = beta·out[i] + Σ_j weights[i, j] · rows[j] over the keys that query i may attend to. With finite
// rows a blocked key's weight of 0 adds nothing to the chain of sums; with a NaN or infinity among them each
// query multiplies its own copy, in which the rows that it must not see are 0: the same sums in the same
// order.
template <class T>
void weighted_rows(const T* weights, const Heads<const T>& rows, std::int64_t b, std::int64_t kv,
                   std::int64_t h, const Sizes& s, std::int64_t width, const ResolvedMask& mask, T beta,
                   T* out, std::int64_t ldo) {
  const T* first = rows.at(b, kv);
  if (mask.blocks_nothing() || kernels::all_finite(first, s.n_k, width, rows.row)) {
    kernels::gemm(Transpose::no, Transpose::no, s.n_q, width, s.n_k, weights, s.n_k, first, rows.row, beta,
                  out, ldo);
    return;
  }
  std::vector<T> seen(static_cast<std::size_t>(s.n_k * width));
  for (std::int64_t i = 0; i < s.n_q; ++i) {
    const auto row = score_row<T>(mask, nullptr, 1, b, h, i);
    for (std::int64_t j = 0; j < s.n_k; ++j) {
      for (std::int64_t c = 0; c < width; ++c) {
        seen[static_cast<std::size_t>(j * width + c)] = row.allows(j) ? first[j * rows.row + c] : T{0};
      }
    }
    kernels::gemm(Transpose::no, Transpose::no, 1, width, s.n_k, weights + i * s.n_k, s.n_k, seen.data(),
                  width, beta, out + i * ldo, ldo);
  }
}

struct Dropping {
  double p;
  DropoutKey key;
  /// y = keep ∘ x / (1 − p) for the weights of one head; x and y may be the same.
  template <class T>
  void apply(const T* x, T* y, std::int64_t piece, std::int64_t n) const {
    kernels::dropout({key.key, key.counter, key.first_element + static_cast<std::uint64_t>(piece * n)}, p, x,
                     y, n);
  }
};

template <class T>
void forward(const Heads<const T>& q, const Heads<const T>& k, const Heads<const T>& v, const Sizes& s,
             const ResolvedMask& mask, double scale, const Dropping& dropping, T* weights,
             const Heads<T>& out) {
  const T* bias = mask.bias() ? mask.bias().data<T>() : nullptr;
  parallel_for(s.batch * s.heads, grain_for(s.cost_of_a_head()), s.cost_of_a_head(),
               [&](std::int64_t begin, std::int64_t end) {
                 std::vector<T> dropped(dropping.p > 0 ? static_cast<std::size_t>(s.scores()) : 0);
                 for (std::int64_t piece = begin; piece < end; ++piece) {
                   const std::int64_t b = piece / s.heads;
                   const std::int64_t h = piece % s.heads;
                   const std::int64_t kv = h / s.group();
                   T* p = weights + piece * s.scores();
                   kernels::gemm(Transpose::no, Transpose::yes, s.n_q, s.n_k, s.d_k, q.at(b, h), q.row,
                                 k.at(b, kv), k.row, T{0}, p, s.n_k);
                   for (std::int64_t i = 0; i < s.n_q; ++i) {
                     kernels::masked_softmax(p + i * s.n_k, s.n_k, score_row<T>(mask, bias, scale, b, h, i));
                   }
                   if (dropping.p > 0) dropping.apply(p, dropped.data(), piece, s.scores());
                   weighted_rows<T>(dropping.p > 0 ? dropped.data() : p, v, b, kv, h, s, s.d_v, mask, T{0},
                                    out.at(b, h), out.row);
                 }
               });
}

// With D = dropout, z = D(P) V and P = softmax(S), S = scale·q·kᵀ + bias:
//   dV = D(P)ᵀ dz,  dP = D(dz Vᵀ),  dS = P ∘ (dP − rowsum(P ∘ dP)),  dq = scale·dS k,  dk = scale·dSᵀ q,
//   dbias = dS.
// Parallel over batch × key/value heads: the query heads of a group add to the same dk and dv, in order.
template <class T>
void backward(const Heads<const T>& q, const Heads<const T>& k, const Heads<const T>& v, const Sizes& s,
              const ResolvedMask& mask, double scale, const Dropping& dropping, const T* weights,
              const Heads<const T>* dout, const T* dweights, const Heads<T>& dq, const Heads<T>& dk,
              const Heads<T>& dv, T* dscores) {
  Cost cost = s.cost_of_a_head();
  cost.flops *= 2.5 * static_cast<double>(s.group());
  parallel_for(s.batch * s.kv_heads, grain_for(cost), cost, [&](std::int64_t begin, std::int64_t end) {
    std::vector<T> own(dscores ? 0 : static_cast<std::size_t>(s.scores()));
    std::vector<T> dropped(dropping.p > 0 ? static_cast<std::size_t>(s.scores()) : 0);
    for (std::int64_t shared = begin; shared < end; ++shared) {
      const std::int64_t b = shared / s.kv_heads;
      const std::int64_t kv = shared % s.kv_heads;
      for (std::int64_t h = kv * s.group(); h < (kv + 1) * s.group(); ++h) {
        const std::int64_t piece = b * s.heads + h;
        const T beta = h == kv * s.group() ? T{0} : T{1};
        const T* p = weights + piece * s.scores();
        T* ds = dscores ? dscores + piece * s.scores() : own.data();
        if (dout) {
          const T* used = p;
          if (dropping.p > 0) {
            dropping.apply(p, dropped.data(), piece, s.scores());
            used = dropped.data();
          }
          kernels::gemm(Transpose::yes, Transpose::no, s.n_k, s.d_v, s.n_q, used, s.n_k, dout->at(b, h),
                        dout->row, beta, dv.at(b, kv), dv.row);
          kernels::gemm(Transpose::no, Transpose::yes, s.n_q, s.n_k, s.d_v, dout->at(b, h), dout->row,
                        v.at(b, kv), v.row, T{0}, ds, s.n_k);
          if (dropping.p > 0) dropping.apply(ds, ds, piece, s.scores());
        } else {
          std::fill_n(ds, s.scores(), T{0});
          if (beta == 0) {
            for (std::int64_t j = 0; j < s.n_k; ++j) std::fill_n(dv.at(b, kv) + j * dv.row, s.d_v, T{0});
          }
        }
        if (dweights) {
          for (std::int64_t i = 0; i < s.scores(); ++i) ds[i] += dweights[piece * s.scores() + i];
        }
        for (std::int64_t i = 0; i < s.n_q; ++i) {
          kernels::masked_softmax_backward(p + i * s.n_k, ds + i * s.n_k, s.n_k);
        }
        // dscores (for the bias) keeps dS itself; the products below want scale·dS.
        T* scaled = ds;
        if (dscores) {
          own.assign(ds, ds + s.scores());
          scaled = own.data();
        }
        for (std::int64_t i = 0; i < s.scores(); ++i) scaled[i] *= static_cast<T>(scale);
        weighted_rows<T>(scaled, k, b, kv, h, s, s.d_k, mask, T{0}, dq.at(b, h), dq.row);
        kernels::gemm(Transpose::yes, Transpose::no, s.n_k, s.d_k, s.n_q, scaled, s.n_k, q.at(b, h), q.row,
                      beta, dk.at(b, kv), dk.row);
      }
    }
  });
}

void check_heads(const AttentionOptions& o, std::int64_t kv_heads) {
  check(o.heads >= 1, "attention", "heads {} is not positive", o.heads);
  check(kv_heads >= 1 && o.heads % kv_heads == 0, "attention", "kv_heads {} does not divide heads {}",
        kv_heads, o.heads);
  check(o.dropout >= 0 && o.dropout <= 1, "attention", "dropout {} is not in [0, 1]", o.dropout);
}

Sizes sizes_of(const Tensor& q, const Tensor& k, const Tensor& v, const AttentionOptions& o) {
  const std::int64_t kv = o.kv_heads == 0 ? o.heads : o.kv_heads;
  check_heads(o, kv);
  const Shape& a = q.shape();
  const Shape& b = k.shape();
  const Shape& c = v.shape();
  check(a.rank() == 3 && b.rank() == 3 && c.rank() == 3, "attention",
        "needs [batch, tokens, heads·d] three times, not {}, {}, {}", a, b, c);
  const bool fits = a[0] == b[0] && b[0] == c[0] && b[1] == c[1] && a[2] % o.heads == 0 && b[2] % kv == 0 &&
                    c[2] % kv == 0 && a[2] / o.heads == b[2] / kv;
  check(fits, "attention", "q {}, k {}, v {} do not fit {} heads over {} key/value heads", a, b, c, o.heads,
        kv);
  check(q.dtype() == k.dtype() && k.dtype() == v.dtype(), "attention", "q, k, v are {}, {}, {}",
        name_of(q.dtype()), name_of(k.dtype()), name_of(v.dtype()));
  return {a[0], o.heads, kv, a[1], b[1], a[2] / o.heads, c[2] / kv};
}

double scale_of(const AttentionOptions& o, const Sizes& s) {
  return o.scale.value_or(s.d_k == 0 ? 1 : 1 / std::sqrt(static_cast<double>(s.d_k)));
}

// Three inputs, or one packed: where q, k, v (and likewise their gradients) lie.
template <class T>
struct Inputs {
  Heads<T> q, k, v;
};
template <class T>
Inputs<T> split(T* qkv, const Sizes& s) {
  const std::int64_t row = (s.heads + 2 * s.kv_heads) * s.d_k;
  return {heads_of(qkv, s.n_q, row, s.d_k), heads_of(qkv + s.heads * s.d_k, s.n_q, row, s.d_k),
          heads_of(qkv + (s.heads + s.kv_heads) * s.d_k, s.n_q, row, s.d_k)};
}
template <class T>
Inputs<T> separate(T* q, T* k, T* v, const Sizes& s) {
  return {heads_of(q, s.n_q, s.heads * s.d_k, s.d_k), heads_of(k, s.n_k, s.kv_heads * s.d_k, s.d_k),
          heads_of(v, s.n_k, s.kv_heads * s.d_v, s.d_v)};
}

AttentionResult run(std::vector<Tensor> inputs, const Sizes& s, const AttentionOptions& o) {
  const bool packed = inputs.size() == 1;
  const Tensor bias = o.mask.bias();
  if (bias) {
    check(bias.dtype() == inputs[0].dtype(), "attention", "a bias of {} for inputs of {}",
          name_of(bias.dtype()), name_of(inputs[0].dtype()));
  }
  const ResolvedMask mask(o.mask, s.batch, s.heads, s.n_q, s.n_k, "attention");
  const double scale = scale_of(o, s);
  const Dropping dropping{o.dropout, o.dropout_key};
  const DType dtype = inputs[0].dtype();
  Array weights({s.batch, s.heads, s.n_q, s.n_k}, dtype);
  Array out({s.batch, s.n_q, s.heads * s.d_v}, dtype);
  std::vector<Saved> saved;
  for (const Tensor& input : inputs) saved.emplace_back(input, "attention");

  dispatch(dtype, "attention", [&](auto zero) {
    using T = decltype(zero);
    const Inputs<const T> in = packed ? split(inputs[0].value().data<T>(), s)
                                      : separate(inputs[0].value().data<T>(), inputs[1].value().data<T>(),
                                                 inputs[2].value().data<T>(), s);
    forward<T>(in.q, in.k, in.v, s, mask, scale, dropping, weights.data<T>(),
               heads_of(out.data<T>(), s.n_q, s.heads * s.d_v, s.d_v));
  });

  if (bias) inputs.push_back(bias);
  const auto closure = [=, bias_shape = bias ? bias.shape() : Shape{}](std::span<const Array> dy, Sinks dx) {
    const Sink& bias_sink = dx.back();
    const bool wants_bias = mask.bias() && bias_sink;
    dispatch(dtype, "attention", [&](auto zero) {
      using T = decltype(zero);
      std::vector<Array> gradients;
      for (const Saved& input : saved) gradients.emplace_back(input.get().shape(), dtype);
      Array dscores = wants_bias ? Array({s.batch, s.heads, s.n_q, s.n_k}, dtype) : Array();
      const Inputs<const T> in =
          packed ? split(saved[0].get().template data<T>(), s)
                 : separate(saved[0].get().template data<T>(), saved[1].get().template data<T>(),
                            saved[2].get().template data<T>(), s);
      const Inputs<T> d = packed ? split(gradients[0].template data<T>(), s)
                                 : separate(gradients[0].template data<T>(), gradients[1].template data<T>(),
                                            gradients[2].template data<T>(), s);
      Heads<const T> dout{};
      if (dy[0]) dout = heads_of(dy[0].template data<T>(), s.n_q, s.heads * s.d_v, s.d_v);
      backward<T>(in.q, in.k, in.v, s, mask, scale, dropping, weights.template data<T>(),
                  dy[0] ? &dout : nullptr, dy[1] ? dy[1].template data<T>() : nullptr, d.q, d.k, d.v,
                  wants_bias ? dscores.template data<T>() : nullptr);
      for (std::size_t i = 0; i < saved.size(); ++i) {
        if (dx[i]) dx[i].add(std::move(gradients[i]));
      }
      if (wants_bias) dx.back().add(kernels::sum_to(dscores, bias_shape));
    });
  };
  std::vector<Tensor> results =
      record_outputs("attention", {out, weights}, std::span<const Tensor>(inputs), closure, Keeps::output);
  return {.out = results[0]};
}

}  // namespace

AttentionResult attention(const Tensor& q, const Tensor& k, const Tensor& v,
                          const AttentionOptions& options) {
  if (options.softcap > 0 || options.sink || options.offset_bias || options.telemetry) {
    return {.out = composite::attention(q, k, v, options).out};
  }
  return run({q, k, v}, sizes_of(q, k, v, options), options);
}

AttentionResult attention(const Tensor& qkv, const AttentionOptions& options) {
  const std::int64_t kv = options.kv_heads == 0 ? options.heads : options.kv_heads;
  check_heads(options, kv);
  const Shape& shape = qkv.shape();
  const std::int64_t parts = options.heads + 2 * kv;
  check(shape.rank() == 3 && shape[2] % parts == 0, "attention",
        "needs [batch, tokens, {}·d] for {} heads over {}, not {}", parts, options.heads, kv, shape);
  const std::int64_t d = shape[2] / parts;
  if (options.softcap > 0 || options.sink || options.offset_bias || options.telemetry) {
    return attention(slice(qkv, 2, 0, options.heads * d),
                     slice(qkv, 2, options.heads * d, (options.heads + kv) * d),
                     slice(qkv, 2, (options.heads + kv) * d, parts * d), options);
  }
  return run({qkv}, {shape[0], options.heads, kv, shape[1], shape[1], d, d}, options);
}

}  // namespace headlab
