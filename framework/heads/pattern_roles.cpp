#include "framework/heads/pattern_roles.h"

#include <algorithm>
#include <functional>
#include <map>

#include "framework/core/parallel.h"
#include "framework/core/random.h"
#include "framework/heads/head_sites.h"
#include "framework/heads/role_keys.h"

namespace headlab {

namespace {

/// What one layer shows for one batch.
struct Shown {
  const Array& pattern;  // [B, heads, n_q, n_k]
  const ResolvedMask& mask;
  const Batch& batch;
  AttentionSite site;
  const std::uint8_t* counted;  // [B, n_q]
  std::int64_t first_head;      // in all_heads()

  std::int64_t examples() const { return pattern.dim(0); }
  std::int64_t heads() const { return pattern.dim(1); }
  std::int64_t n_q() const { return pattern.dim(2); }
  std::int64_t n_k() const { return pattern.dim(3); }
  const float* row(std::int64_t example, std::int64_t head, std::int64_t query) const {
    return pattern.data<float>() + ((example * heads() + head) * n_q() + query) * n_k();
  }
  bool counts(std::int64_t example, std::int64_t query) const {
    return counted[example * n_q() + query] != 0 && mask.allowed_keys(example, 0, query) >= 2;
  }
  /// The key at δ = 0.
  std::int64_t own(std::int64_t query) const { return query + n_k() - n_q(); }
};

/// Runs one half of the held-out set, or its beginning, and shows every layer's pattern batch by batch.
void show_patterns(Model& model, const Task& task, std::uint64_t seed, HeldOut part, std::int64_t weights,
                   const std::function<void(const Shown&)>& show) {
  const std::vector<HeadLayer*> layers = head_layers(model);
  const Needs& needs = model.needs();
  const std::int64_t longest = std::max(needs.context, needs.source_context);
  std::vector<std::string> names;
  std::int64_t all = 0;
  std::int64_t largest = 1;
  for (HeadLayer* layer : layers) {
    names.push_back(layer->sites.pattern.path());
    all += layer->heads() * longest * longest;
    largest = std::max(largest, layer->heads() * longest * longest);
  }
  // Content roles set one sequence against another, so a batch has two at least.
  const std::int64_t at_once = std::clamp<std::int64_t>((std::int64_t{1} << 22) / largest, 2, 64);
  const std::int64_t wanted = std::max<std::int64_t>(weights / std::max<std::int64_t>(all, 1), 2);
  const std::int64_t size = std::min(wanted, task.held_out_size(part));
  const ActivationCache seen(model, names);
  for (std::int64_t first = 0; first < size; first += at_once) {
    const Batch batch = task.held_out(seed, first, std::min(at_once, size - first), part);
    model.logits(batch);
    std::int64_t first_head = 0;
    for (std::size_t i = 0; i < layers.size(); ++i) {
      if (seen.has(names[i])) {
        const Array& pattern = seen[names[i]];
        const AttentionSite site = site_of(*layers[i], needs);
        const ResolvedMask mask(mask_of(site, needs, batch), pattern.dim(0), 1, pattern.dim(2),
                                pattern.dim(3), "roles");
        const Array counted = counted_queries(site, batch);
        show({pattern, mask, batch, site, counted.data<std::uint8_t>(), first_head});
      }
      first_head += layers[i]->heads();
    }
  }
}

/// Mean weight by offset and by key, to choose from.
class Profile {
 public:
  void add(const Shown& shown, std::int64_t head) {
    first_offset_ = 1 - shown.n_k();
    offsets_.resize(static_cast<std::size_t>(shown.n_q() + shown.n_k() - 1));
    keys_.resize(static_cast<std::size_t>(shown.n_k()));
    for (std::int64_t b = 0; b < shown.examples(); ++b) {
      for (std::int64_t i = 0; i < shown.n_q(); ++i) {
        if (!shown.counts(b, i)) continue;
        ++queries_;
        const ResolvedMask::Row row = shown.mask.row(b, 0, i);
        const float* weights = shown.row(b, head, i);
        for (std::int64_t j = row.first; j < row.last; ++j) {
          if (!row.allows(j)) continue;
          offsets_[static_cast<std::size_t>(j - shown.own(i) - first_offset_)].add(weights[j]);
          keys_[static_cast<std::size_t>(j)].add(weights[j]);
        }
      }
    }
  }
  std::vector<std::int64_t> offsets(const std::vector<std::int64_t>& without, std::size_t count) const {
    return heaviest(offsets_, first_offset_, without, count);
  }
  std::vector<std::int64_t> keys(const std::vector<std::int64_t>& without, std::size_t count) const {
    return heaviest(keys_, 0, without, count);
  }

 private:
  struct Entry {
    double sum = 0;
    std::int64_t queries = 0;
    void add(float weight) {
      sum += static_cast<double>(weight);
      ++queries;
    }
  };
  /// Entries that half of the queries have, the largest mean first; ties go to the lower number. (A key that
  /// only the last two queries see gets half of a previous-token head.)
  std::vector<std::int64_t> heaviest(const std::vector<Entry>& from, std::int64_t first,
                                     const std::vector<std::int64_t>& without, std::size_t count) const {
    std::vector<std::pair<double, std::int64_t>> order;
    for (std::size_t i = 0; i < from.size(); ++i) {
      const std::int64_t number = first + static_cast<std::int64_t>(i);
      if (from[i].queries == 0 || from[i].queries * 2 < queries_) continue;
      if (std::count(without.begin(), without.end(), number) > 0) continue;
      order.emplace_back(-from[i].sum / static_cast<double>(from[i].queries), number);
    }
    std::sort(order.begin(), order.end());
    if (order.size() > count) order.resize(count);
    std::vector<std::int64_t> numbers;
    for (const auto& entry : order) numbers.push_back(entry.second);
    return numbers;
  }

  std::vector<Entry> offsets_, keys_;
  std::int64_t first_offset_ = 0, queries_ = 0;
};

/// One head's roles while sums grow.
struct Sums {
  std::vector<PatternScore> roles;
  std::vector<std::int64_t> null_queries;  // a role
  std::int64_t null_used = 0;              // queries that the null of places has
};

std::vector<PatternScore> roles_of(const Profile& profile, AttentionSite site, const Task& task,
                                   bool reads_tokens) {
  std::vector<PatternScore> roles;
  const auto add = [&](PatternRole role, std::int64_t which) { roles.push_back({role, which, 0, 0, {}}); };
  const bool self = site != AttentionSite::cross;
  std::vector<std::int64_t> named;
  if (self) {
    named = {-1, 0, 1};
    add(PatternRole::previous, -1);
    add(PatternRole::self, 0);
    add(PatternRole::next, 1);
  }
  for (const std::int64_t offset : profile.offsets(named, 2)) add(PatternRole::offset, offset);
  for (const std::int64_t key : profile.keys({0}, 1)) add(PatternRole::fixed_key, key);
  if (reads_tokens && site == AttentionSite::self && !task.delimiters().empty())
    add(PatternRole::delimiter, 0);
  if (reads_tokens && self) add(PatternRole::duplicate, 0);
  const std::vector<HeadTarget> targets = task.head_targets();
  for (std::size_t t = 0; t < targets.size(); ++t) {
    if (targets[t].site == site && targets[t].kind == HeadTarget::Kind::key)
      add(PatternRole::relation, static_cast<std::int64_t>(t));
  }
  return roles;
}

bool by_place(PatternRole role) { return role <= PatternRole::fixed_key; }

std::int64_t key_of(const PatternScore& role, const Shown& shown, std::int64_t query) {
  return role.role == PatternRole::fixed_key ? role.which : shown.own(query) + role.which;
}

/// A number for every draw, the same for every head: a cheap mixer (SplitMix64), since there are many.
std::uint64_t mixed(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15U;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9U;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebU;
  return x ^ (x >> 31);
}

/// 0 … n − 1, nearly even.
std::int64_t scaled(std::uint64_t bits, std::int64_t n) {
  return static_cast<std::int64_t>(((bits >> 32) * static_cast<std::uint64_t>(n)) >> 32);
}

void add_places(const Shown& shown, std::int64_t head, std::uint64_t salt, const PatternRoleOptions& options,
                Sums& sums) {
  std::vector<std::int64_t> allowed;
  std::vector<double> drawn(static_cast<std::size_t>(options.null_draws));
  for (std::int64_t b = 0; b < shown.examples(); ++b) {
    for (std::int64_t i = 0; i < shown.n_q(); ++i) {
      if (!shown.counts(b, i)) continue;
      const ResolvedMask::Row row = shown.mask.row(b, 0, i);
      const float* weights = shown.row(b, head, i);
      const bool with_null = sums.null_used < options.null_queries;
      if (with_null) {
        ++sums.null_used;
        allowed.clear();
        for (std::int64_t j = row.first; j < row.last; ++j) {
          if (row.allows(j)) allowed.push_back(j);
        }
        const std::uint64_t query = mixed(salt + static_cast<std::uint64_t>(b * shown.n_q() + i));
        for (std::size_t d = 0; d < drawn.size(); ++d) {
          const std::int64_t pick = scaled(mixed(query + d), std::ssize(allowed));
          drawn[d] = static_cast<double>(weights[allowed[static_cast<std::size_t>(pick)]]);
        }
      }
      for (std::size_t r = 0; r < sums.roles.size(); ++r) {
        PatternScore& role = sums.roles[r];
        if (!by_place(role.role)) continue;
        const std::int64_t key = key_of(role, shown, i);
        if (!row.allows(key)) continue;
        ++role.queries;
        role.score += static_cast<double>(weights[key]);
        if (!with_null) continue;
        ++sums.null_queries[r];
        for (std::size_t d = 0; d < drawn.size(); ++d) role.null[d] += drawn[d];
      }
    }
  }
}

/// Σ weight of example a's pattern on the keys that example b has, over the queries that count in both.
std::pair<double, std::int64_t> mass_on(const Shown& shown, std::int64_t head, const RoleKeys& keys,
                                        std::int64_t a, std::int64_t b) {
  double sum = 0;
  std::int64_t queries = 0;
  for (std::int64_t i = 0; i < shown.n_q(); ++i) {
    const std::span<const std::int64_t> places = keys.of(b, i);
    if (places.empty() || (a != b && shown.mask.allowed_keys(a, 0, i) < 2)) continue;
    ++queries;
    const float* weights = shown.row(a, head, i);
    for (const std::int64_t key : places) sum += static_cast<double>(weights[key]);
  }
  return {sum, queries};
}

void add_content(const Shown& shown, std::int64_t head, const RoleKeys& keys, std::uint64_t salt,
                 const PatternRoleOptions& options, PatternScore& role, std::int64_t& null_queries) {
  const std::int64_t n = shown.examples();
  for (std::int64_t b = 0; b < n; ++b) {
    const auto own = mass_on(shown, head, keys, b, b);
    role.score += own.first;
    role.queries += own.second;
  }
  if (n < 2 || null_queries >= options.null_queries) return;
  std::vector<std::pair<double, std::int64_t>> pairs;  // [b, a]
  for (std::int64_t b = 0; b < n; ++b) {
    for (std::int64_t a = 0; a < n; ++a)
      pairs.push_back(a == b ? std::pair(0.0, std::int64_t{0}) : mass_on(shown, head, keys, a, b));
  }
  // Sequences may have different numbers of queries: a draw is the mean of their means, weighted by their
  // own number.
  for (std::int64_t b = 0; b < n; ++b) {
    std::int64_t own = 0;
    for (std::int64_t i = 0; i < shown.n_q(); ++i) own += keys.of(b, i).empty() ? 0 : 1;
    if (own == 0) continue;
    null_queries += own;
    const std::uint64_t sequence = mixed(salt + static_cast<std::uint64_t>(b));
    for (std::size_t d = 0; d < role.null.size(); ++d) {
      const std::int64_t step = 1 + scaled(mixed(sequence + d), n - 1);
      const auto& pair = pairs[static_cast<std::size_t>(b * n + (b + step) % n)];
      if (pair.second > 0)
        role.null[d] += static_cast<double>(own) * pair.first / static_cast<double>(pair.second);
    }
  }
}

void add_batch(const Shown& shown, const Task& task, const Needs& needs, std::uint64_t salt,
               const PatternRoleOptions& options, std::vector<Sums>& all) {
  const auto first = static_cast<std::size_t>(shown.first_head);
  const std::vector<PatternScore>& roles = all[first].roles;
  std::map<std::pair<PatternRole, std::int64_t>, RoleKeys> keys;  // of content roles: the same in all heads
  const CountedQueries counted{shown.mask, shown.counted, shown.n_q()};
  for (const PatternScore& role : roles) {
    if (role.role == PatternRole::delimiter) {
      keys.emplace(std::pair(role.role, role.which), delimiter_keys(shown.batch, task, counted));
    } else if (role.role == PatternRole::duplicate) {
      keys.emplace(std::pair(role.role, role.which),
                   duplicate_keys(whole_tokens(shown.batch, shown.site, needs), counted));
    } else if (role.role == PatternRole::relation) {
      const auto target = static_cast<std::size_t>(role.which);
      keys.emplace(std::pair(role.role, role.which), named_keys(shown.batch.head_targets[target], counted));
    }
  }
  const double cost = static_cast<double>(shown.examples() * shown.n_q() * shown.n_k() * 20);
  parallel_for(shown.heads(), 1, {.flops = cost, .bytes = 0}, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t head = begin; head < end; ++head) {
      Sums& sums = all[first + static_cast<std::size_t>(head)];
      add_places(shown, head, salt, options, sums);
      for (std::size_t r = 0; r < sums.roles.size(); ++r) {
        const auto found = keys.find({sums.roles[r].role, sums.roles[r].which});
        if (found == keys.end()) continue;
        add_content(shown, head, found->second, salt, options, sums.roles[r], sums.null_queries[r]);
      }
    }
  });
}

}  // namespace

std::vector<std::vector<PatternScore>> pattern_scores(Model& model, const Task& task, std::uint64_t seed,
                                                      const PatternRoleOptions& options) {
  const std::size_t heads = all_heads(model).size();
  std::vector<Profile> profiles(heads);
  show_patterns(model, task, seed, HeldOut::choose, options.weights / 2, [&](const Shown& shown) {
    parallel_for(shown.heads(), 1, {.flops = 1e6, .bytes = 0}, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t head = begin; head < end; ++head)
        profiles[static_cast<std::size_t>(shown.first_head + head)].add(shown, head);
    });
  });
  std::vector<Sums> sums(heads);
  std::vector<bool> ready(heads);
  std::uint64_t batch = 0;
  show_patterns(model, task, seed, HeldOut::score, options.weights, [&](const Shown& shown) {
    for (std::int64_t head = 0; head < shown.heads(); ++head) {
      const auto index = static_cast<std::size_t>(shown.first_head + head);
      if (ready[index]) continue;
      ready[index] = true;
      sums[index].roles = roles_of(profiles[index], shown.site, task, !model.needs().streams.empty());
      sums[index].null_queries.resize(sums[index].roles.size());
      for (PatternScore& role : sums[index].roles)
        role.null.resize(static_cast<std::size_t>(options.null_draws));
    }
    add_batch(shown, task, model.needs(), hash(seed, batch++), options, sums);
  });
  std::vector<std::vector<PatternScore>> result;
  for (Sums& head : sums) {
    result.emplace_back();
    for (std::size_t r = 0; r < head.roles.size(); ++r) {
      PatternScore& role = head.roles[r];
      if (role.queries == 0 || head.null_queries[r] == 0) continue;
      role.score /= static_cast<double>(role.queries);
      for (double& value : role.null) value /= static_cast<double>(head.null_queries[r]);
      std::sort(role.null.begin(), role.null.end());
      result.back().push_back(std::move(role));
    }
  }
  return result;
}

}  // namespace headlab
