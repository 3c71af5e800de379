#include "framework/sweep/rates.h"

#include <algorithm>

#include <fmt/format.h>

#include "framework/core/check.h"

namespace headlab {

void choose_rate(RateChoice& choice, std::int64_t heads) {
  std::vector<double> rates;
  double least = 0;
  choice.best.reset();
  for (std::size_t i = 0; i < choice.tried.size(); ++i) {
    rates.push_back(choice.tried[i].rate);
    const Summary loss = summarise(choice.tried[i].loss);
    if (loss.missing > 0 || !loss.mean || (choice.best && *loss.mean >= least)) continue;
    choice.best = i;
    least = *loss.mean;
  }
  check(choice.best.has_value(), "ablation", "with {} heads training fails at every learning rate of {}",
        heads, fmt::join(rates, ", "));
  const auto [low, high] = std::minmax_element(rates.begin(), rates.end());
  const double best = rates[*choice.best];
  choice.at_the_edge = rates.size() > 1 && (best == *low || best == *high);
}

}  // namespace headlab
