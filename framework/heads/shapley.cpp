#include "framework/heads/shapley.h"

#include <algorithm>
#include <cmath>

#include "framework/core/check.h"
#include "framework/core/random.h"

namespace headlab {

namespace {

struct Worth {
  double accuracy = 0, loss = 0;
};

// The heads that are off while those of `on` (bits, by index) are on.
HeadList off_heads(const std::vector<HeadId>& heads, std::uint64_t on) {
  HeadList off;
  for (std::size_t i = 0; i < heads.size(); ++i) {
    if ((on >> i & 1) == 0) off.push_back(heads[i]);
  }
  return off;
}

void add_exact(Shapley& result, const std::vector<Worth>& worth) {
  const std::size_t n = result.shares.size();
  // |S|!(n−|S|−1)!/n! = 1 / (n · C(n−1, |S|))
  std::vector<double> weight(n);
  double binomial = 1;
  for (std::size_t size = 0; size < n; ++size) {
    weight[size] = 1 / (static_cast<double>(n) * binomial);
    binomial *= static_cast<double>(n - 1 - size) / static_cast<double>(size + 1);
  }
  for (std::uint64_t on = 0; on < worth.size(); ++on) {
    const auto size = static_cast<std::size_t>(__builtin_popcountll(on));
    for (std::size_t h = 0; h < n; ++h) {
      if ((on >> h & 1) != 0) continue;
      const Worth& with = worth[on | std::uint64_t{1} << h];
      result.shares[h].accuracy += weight[size] * (with.accuracy - worth[on].accuracy);
      result.shares[h].loss += weight[size] * (worth[on].loss - with.loss);
    }
  }
}

double standard_error(double sum, double squares, double n) {
  if (n < 2) return 0;
  return std::sqrt(std::max(0.0, (squares - sum * sum / n) / (n - 1)) / n);
}

}  // namespace

Shapley shapley(Model& model, const Task& task, std::uint64_t seed, std::int64_t orders,
                const KnockoutOptions& options) {
  const std::vector<HeadId> heads = all_heads(model);
  Shapley result;
  result.exact = heads.size() <= most_exact_heads;
  check(result.exact || orders >= 2, "shapley", "{} random orders, needs at least 2", orders);
  for (const HeadId id : heads) result.shares.push_back({.head = id});
  std::vector<HeadList> sets;
  std::vector<std::vector<std::int64_t>> drawn;
  if (result.exact) {
    for (std::uint64_t on = 0; on < std::uint64_t{1} << heads.size(); ++on)
      sets.push_back(off_heads(heads, on));
  } else {
    result.orders = orders;
    for (std::int64_t i = 0; i < orders; ++i) {
      drawn.push_back(Random(seed, Stream::statistics, hash(hash("shapley"), static_cast<std::uint64_t>(i)))
                          .permutation(std::ssize(heads)));
      HeadList off = heads;
      sets.push_back(off);
      for (const std::int64_t next : drawn.back()) {
        off.erase(std::find(off.begin(), off.end(), heads[static_cast<std::size_t>(next)]));
        sets.push_back(off);
      }
    }
  }
  result.runs = answers_without_each(model, task, seed, sets, options);
  std::vector<Worth> worth;
  for (const Answers& answers : result.runs.answers) {
    worth.push_back({answers.accuracy(task.accuracy()), answers.loss});
  }
  result.runs.answers.clear();
  result.evaluations = std::ssize(sets);
  result.accuracy =
      worth.empty() ? 0 : worth[result.exact ? worth.size() - 1 : heads.size()].accuracy - worth[0].accuracy;
  result.loss =
      worth.empty() ? 0 : worth[0].loss - worth[result.exact ? worth.size() - 1 : heads.size()].loss;
  if (result.exact) {
    add_exact(result, worth);
    return result;
  }
  std::vector<Worth> squares(heads.size());
  for (std::size_t i = 0; i < drawn.size(); ++i) {
    for (std::size_t step = 0; step < heads.size(); ++step) {
      const auto head = static_cast<std::size_t>(drawn[i][step]);
      const Worth& without = worth[i * (heads.size() + 1) + step];
      const Worth& with = worth[i * (heads.size() + 1) + step + 1];
      const double accuracy = with.accuracy - without.accuracy;
      const double loss = without.loss - with.loss;
      result.shares[head].accuracy += accuracy;
      result.shares[head].loss += loss;
      squares[head].accuracy += accuracy * accuracy;
      squares[head].loss += loss * loss;
    }
  }
  const auto n = static_cast<double>(orders);
  for (std::size_t h = 0; h < heads.size(); ++h) {
    Shapley::Share& share = result.shares[h];
    share.accuracy_error = standard_error(share.accuracy, squares[h].accuracy, n);
    share.loss_error = standard_error(share.loss, squares[h].loss, n);
    share.accuracy /= n;
    share.loss /= n;
  }
  return result;
}

}  // namespace headlab
