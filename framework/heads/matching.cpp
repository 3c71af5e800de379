#include "framework/heads/matching.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "framework/core/check.h"
#include "framework/core/parallel.h"
#include "framework/core/random.h"
#include "framework/heads/specialisation.h"

namespace headlab {

namespace {

/// Rows ≤ columns. Row by row the cheapest augmenting path under the potentials u, v; index 0 stands for "no
/// row" and "no column".
std::vector<std::int64_t> assign_all(const std::vector<double>& cost, std::int64_t rows,
                                     std::int64_t columns) {
  const auto size = static_cast<std::size_t>(columns) + 1;
  std::vector<double> u(static_cast<std::size_t>(rows) + 1), v(size);
  std::vector<std::size_t> row_of(size), way(size);
  for (std::size_t row = 1; row < u.size(); ++row) {
    std::vector<double> least(size, std::numeric_limits<double>::infinity());
    std::vector<bool> used(size);
    row_of[0] = row;
    std::size_t column = 0;
    do {
      used[column] = true;
      const std::size_t at = row_of[column];
      double delta = std::numeric_limits<double>::infinity();
      std::size_t next = 0;
      for (std::size_t j = 1; j < size; ++j) {
        if (used[j]) continue;
        const double reduced = cost[(at - 1) * (size - 1) + j - 1] - u[at] - v[j];
        if (reduced < least[j]) {
          least[j] = reduced;
          way[j] = column;
        }
        if (least[j] < delta) {
          delta = least[j];
          next = j;
        }
      }
      for (std::size_t j = 0; j < size; ++j) {
        if (used[j]) {
          u[row_of[j]] += delta;
          v[j] -= delta;
        } else {
          least[j] -= delta;
        }
      }
      column = next;
    } while (row_of[column] != 0);
    for (; column != 0; column = way[column]) row_of[column] = row_of[way[column]];
  }
  std::vector<std::int64_t> column_of(static_cast<std::size_t>(rows));
  for (std::size_t j = 1; j < size; ++j) {
    if (row_of[j] != 0) column_of[row_of[j] - 1] = static_cast<std::int64_t>(j) - 1;
  }
  return column_of;
}

/// Sums over queries of one layer, [first heads, second heads].
struct Distances {
  std::int64_t rows = 0, columns = 0;
  std::vector<double> sums, null;
  std::int64_t queries = 0;

  void add(const Array& first, const Array& second, const ResolvedMask& mask, const Array& counted,
           std::uint64_t seed) {
    rows = first.dim(1);
    columns = second.dim(1);
    const std::int64_t n_q = first.dim(2);
    const std::int64_t n_k = first.dim(3);
    sums.resize(static_cast<std::size_t>(rows * columns));
    null.resize(sums.size());
    std::vector<std::int64_t> allowed;
    std::vector<float> elsewhere(static_cast<std::size_t>(n_k));
    for (std::int64_t i = 0; i < counted.size(); ++i) {
      const std::int64_t example = i / n_q;
      const std::int64_t query = i % n_q;
      if (counted.data<std::uint8_t>()[i] == 0 || mask.allowed_keys(example, 0, query) < 2) continue;
      ++queries;
      const ResolvedMask::Row row = mask.row(example, 0, query);
      allowed.clear();
      for (std::int64_t j = row.first; j < row.last; ++j) {
        if (row.allows(j)) allowed.push_back(j);
      }
      const auto weights = [&](const Array& pattern, std::int64_t head) {
        return pattern.data<float>() + ((example * pattern.dim(1) + head) * n_q + query) * n_k;
      };
      for (std::int64_t b = 0; b < columns; ++b) {
        Random random(seed, Stream::statistics,
                      hash(static_cast<std::uint64_t>(i), static_cast<std::uint64_t>(b)));
        const std::vector<std::int64_t> order = random.permutation(std::ssize(allowed));
        for (std::size_t j = 0; j < allowed.size(); ++j) {
          elsewhere[static_cast<std::size_t>(allowed[j])] =
              weights(second, b)[allowed[static_cast<std::size_t>(order[j])]];
        }
        for (std::int64_t a = 0; a < rows; ++a) {
          const auto pair = static_cast<std::size_t>(a * columns + b);
          sums[pair] += root_js(row, std::ssize(allowed), weights(first, a), weights(second, b));
          null[pair] += root_js(row, std::ssize(allowed), weights(first, a), elsewhere.data());
        }
      }
    }
  }

  void match(std::int64_t layer, std::vector<HeadMatch>& heads) const {
    if (queries == 0) return;
    std::vector<double> cost = sums;
    for (double& c : cost) c /= static_cast<double>(queries);
    const std::vector<std::optional<std::int64_t>> columns_of = assign(cost, rows, columns);
    for (HeadMatch& match : heads) {
      if (match.head.layer != layer) continue;
      const auto from = match.head.head * columns;
      const auto begin = null.begin() + from;
      match.null = *std::min_element(begin, begin + columns) / static_cast<double>(queries);
      const std::optional<std::int64_t> column = columns_of[static_cast<std::size_t>(match.head.head)];
      if (!column) continue;
      match.distance = cost[static_cast<std::size_t>(from + *column)];
      if (*match.distance < *match.null) match.partner = HeadId{layer, *column};
    }
  }
};

std::vector<std::string> pattern_names(Model& model) {
  std::vector<std::string> names;
  for (HeadLayer* layer : head_layers(model)) names.push_back(layer->sites.pattern.path());
  return names;
}

}  // namespace

std::vector<std::optional<std::int64_t>> assign(const std::vector<double>& cost, std::int64_t rows,
                                                std::int64_t columns) {
  check(rows >= 0 && columns >= 0 && std::ssize(cost) == rows * columns, "assign",
        "{} costs do not fit {} rows and {} columns", cost.size(), rows, columns);
  for (const double c : cost) check(std::isfinite(c), "assign", "a cost of {} is not finite", c);
  std::vector<std::optional<std::int64_t>> result(static_cast<std::size_t>(rows));
  if (rows == 0 || columns == 0) return result;
  if (rows <= columns) {
    const std::vector<std::int64_t> column_of = assign_all(cost, rows, columns);
    std::copy(column_of.begin(), column_of.end(), result.begin());
    return result;
  }
  std::vector<double> transposed(cost.size());
  for (std::int64_t r = 0; r < rows; ++r) {
    for (std::int64_t c = 0; c < columns; ++c)
      transposed[static_cast<std::size_t>(c * rows + r)] = cost[static_cast<std::size_t>(r * columns + c)];
  }
  const std::vector<std::int64_t> row_of = assign_all(transposed, columns, rows);
  for (std::size_t c = 0; c < row_of.size(); ++c)
    result[static_cast<std::size_t>(row_of[c])] = static_cast<std::int64_t>(c);
  return result;
}

std::int64_t HeadMatching::matched() const {
  return std::count_if(heads.begin(), heads.end(), [](const HeadMatch& m) { return m.partner.has_value(); });
}

HeadMatching match_heads(Model& first, Model& second, const Task& task, std::uint64_t seed,
                         std::int64_t sequences) {
  const std::vector<HeadLayer*> layers = head_layers(first);
  const std::size_t others = head_layers(second).size();
  check(layers.size() == others, "match_heads", "models of {} and {} layers with heads have no common order",
        layers.size(), others);
  check(sequences >= 1, "match_heads", "{} sequences, needs at least 1", sequences);
  HeadMatching result;
  for (const HeadId id : all_heads(first)) result.heads.push_back({id, {}, {}, {}});
  const std::vector<std::string> first_names = pattern_names(first);
  const std::vector<std::string> second_names = pattern_names(second);
  std::vector<Distances> distances(layers.size());
  {
    const ActivationCache first_seen(first, first_names);
    const ActivationCache second_seen(second, second_names);
    constexpr std::int64_t at_once = 16;
    const std::int64_t size = std::min(sequences, task.held_out_size(HeldOut::score));
    for (std::int64_t begin = 0; begin < size; begin += at_once) {
      const Batch batch = task.held_out(seed, begin, std::min(at_once, size - begin), HeldOut::score);
      first.logits(batch);
      second.logits(batch);
      const auto layer_count = static_cast<std::int64_t>(layers.size());
      parallel_for(layer_count, 1, {.flops = 1e7, .bytes = 0}, [&](std::int64_t from, std::int64_t to) {
        for (std::int64_t layer = from; layer < to; ++layer) {
          const auto l = static_cast<std::size_t>(layer);
          if (!first_seen.has(first_names[l]) || !second_seen.has(second_names[l])) continue;
          const Array& pattern = first_seen[first_names[l]];
          const AttentionSite site = site_of(*layers[l], first.needs());
          const ResolvedMask mask(mask_of(site, first.needs(), batch), pattern.dim(0), 1, pattern.dim(2),
                                  pattern.dim(3), "match_heads");
          distances[l].add(pattern, second_seen[second_names[l]], mask, counted_queries(site, batch),
                           hash(seed, static_cast<std::uint64_t>(begin)));
        }
      });
    }
  }
  for (std::size_t l = 0; l < distances.size(); ++l)
    distances[l].match(static_cast<std::int64_t>(l), result.heads);
  return result;
}

}  // namespace headlab
