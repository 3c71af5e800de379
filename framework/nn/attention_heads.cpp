// Taking heads out of a layer: rows of the projections into heads, columns of W_O.
#include <algorithm>
#include <cstring>

#include "framework/nn/attention.h"

namespace headlab {

namespace {

// Blocks of `size` rows of x, those of the given heads, `first` being where head 0 begins.
void append_rows(std::vector<Array>& parts, const Array& x, std::int64_t first,
                 std::span<const std::int64_t> heads, std::int64_t size) {
  for (const std::int64_t head : heads) {
    parts.push_back(x.range(first + head * size, first + (head + 1) * size));
  }
}

Array joined(const std::vector<Array>& parts) {
  std::int64_t rows = 0;
  for (const Array& part : parts) rows += part.dim(0);
  Array all(parts.front().shape().with(0, rows), parts.front().dtype());
  auto* to = static_cast<char*>(all.raw());
  for (const Array& part : parts) {
    std::memcpy(to, part.raw(), static_cast<std::size_t>(part.bytes()));
    to += part.bytes();
  }
  return all;
}

Array rows_of(const Array& x, std::span<const std::int64_t> heads, std::int64_t size) {
  std::vector<Array> parts;
  append_rows(parts, x, 0, heads, size);
  return joined(parts);
}

// Of x [rows, all·size] the columns of the given heads, each multiplied by its scale.
Array columns_of(const Array& x, std::span<const std::int64_t> heads, std::span<const double> scales,
                 std::int64_t size) {
  const std::int64_t width = std::ssize(heads) * size;
  Array chosen({x.dim(0), width}, x.dtype());
  dispatch(x.dtype(), "attention", [&](auto zero) {
    using T = decltype(zero);
    for (std::int64_t row = 0; row < x.dim(0); ++row) {
      for (std::size_t i = 0; i < heads.size(); ++i) {
        const T* from = x.data<T>() + row * x.dim(1) + heads[i] * size;
        T* to = chosen.data<T>() + row * width + static_cast<std::int64_t>(i) * size;
        for (std::int64_t c = 0; c < size; ++c) to[c] = static_cast<T>(scales[i]) * from[c];
      }
    }
  });
  return chosen;
}

}  // namespace

std::map<std::string, Array> MultiHeadAttention::state_of_heads(std::span<const std::int64_t> kept,
                                                                std::span<const double> scales) {
  const Options& o = options_;
  const std::int64_t group = heads_together();
  check(kept.size() == scales.size(), "attention", "{} heads and {} scales", kept.size(), scales.size());
  for (std::size_t i = 0; i < kept.size(); ++i) {
    check(kept[i] >= 0 && kept[i] < o.heads && (i == 0 || kept[i] > kept[i - 1]), "attention",
          "head {} cannot be kept: heads are from 0 to {} and rise", kept[i], o.heads - 1);
  }
  std::vector<std::int64_t> kv;  // key/value heads that are kept
  for (std::size_t i = 0; i < kept.size(); i += static_cast<std::size_t>(group)) {
    kv.push_back(kept[i] / group);
    const std::size_t end = i + static_cast<std::size_t>(group);
    check(kept[i] % group == 0 && end <= kept.size() && kept[end - 1] == kept[i] + group - 1, "attention",
          "heads {} to {} share keys and values: they stay or go together", kv.back() * group,
          (kv.back() + 1) * group - 1);
  }
  check(out.has_value() || std::all_of(scales.begin(), scales.end(), [](double s) { return s == 1; }),
        "attention", "without an output projection heads cannot be scaled");
  std::map<std::string, Array> all = module().state();
  std::map<std::string, Array> state;
  if (kept.empty()) {
    if (all.count("out.bias") != 0) state["out.bias"] = all["out.bias"];
    return state;
  }
  const std::int64_t k_first = o.heads * o.d_k;
  const std::int64_t v_first = k_first + o.kv_heads * o.d_k;
  for (auto& entry : all) {
    const std::string& name = entry.first;
    const Array& x = entry.second;
    if (name == "qkv.weight" || name == "qkv.bias") {
      std::vector<Array> parts;
      append_rows(parts, x, 0, kept, o.d_k);
      append_rows(parts, x, k_first, kv, o.d_k);
      append_rows(parts, x, v_first, kv, o.d_v);
      state[name] = joined(parts);
    } else if (name == "q.weight") {
      state[name] = rows_of(x, kept, o.d_k);
    } else if (name == "k.weight" || name == "v.weight") {
      state[name] = rows_of(x, kv, name == "k.weight" ? o.d_k : o.d_v);
    } else if (name == "sink") {
      state[name] = rows_of(x, kept, 1);
    } else if (name == "smear") {
      state[name] = rows_of(x, kv, 1);
    } else if (name == "relative_bias") {
      state[name] = columns_of(x, kept, std::vector<double>(kept.size(), 1), 1);
    } else if (name == "relative_keys") {
      state[name] = columns_of(x, kept, std::vector<double>(kept.size(), 1), o.d_k);
    } else if (name == "out.weight") {
      state[name] = columns_of(x, kept, scales, o.d_v);
    } else {
      state[name] = x;  // norms over a head, shared by all of them; the bias of W_O
    }
  }
  return state;
}

}  // namespace headlab
