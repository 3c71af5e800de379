#include "framework/ops/telemetry.h"

#include <cmath>
#include <limits>

#include "framework/ops/attention.h"
#include "tests/support/ops.h"

namespace headlab {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

Array row_of(std::initializer_list<double> weights) {
  return Array::of<double>({1, 1, 1, static_cast<std::int64_t>(weights.size())}, weights);
}

HeadTelemetry first_head(const Array& weights, const Mask& mask = {}, const TelemetryOptions& options = {}) {
  return telemetry_of(weights, mask, options).heads.at(0);
}

TEST(Telemetry, MeasuresOneRowByHand) {
  const HeadTelemetry t = first_head(row_of({0.5, 0.25, 0.25, 0}));
  const double entropy = 1.5 * std::log(2);
  EXPECT_EQ(t.queries, 1);
  EXPECT_NEAR(t.entropy, entropy, 1e-15);
  EXPECT_NEAR(t.normalised_entropy, 0.75, 1e-15);  // over ln 4
  EXPECT_NEAR(t.effective_keys, std::exp(entropy), 1e-14);
  EXPECT_EQ(t.confidence, 0.5);
  EXPECT_EQ(t.distance, 0.5 * 3 + 0.25 * 2 + 0.25 * 1);  // the only query stands at the last key
}

TEST(Telemetry, EvenAttentionOverFourKeysHasEntropyLnFour) {
  const HeadTelemetry t = first_head(row_of({0.25, 0.25, 0.25, 0.25}));
  EXPECT_NEAR(t.entropy, std::log(4), 1e-15);
  EXPECT_NEAR(t.normalised_entropy, 1, 1e-15);
  EXPECT_NEAR(t.effective_keys, 4, 1e-14);
}

TEST(Telemetry, EntropyIsOverKeysWhenASinkTakesTheRest) {
  const HeadTelemetry t = first_head(row_of({0.25, 0.25}));
  EXPECT_NEAR(t.entropy, std::log(2), 1e-15);  // −2 · ¼ ln ¼, not that of ½ and ½ nor of three keys
  EXPECT_EQ(t.confidence, 0.25);
}

TEST(Telemetry, NormalisesByTheKeysThatAreAllowed) {
  const Array weights = row_of({0.5, 0.5, 0, 0});
  EXPECT_NEAR(first_head(weights).normalised_entropy, 0.5, 1e-15);
  EXPECT_NEAR(first_head(weights, Mask::key_lengths({2})).normalised_entropy, 1, 1e-15);
  const Array bias = Array::of<double>({1, 4}, {0, 3, -infinity, -infinity});
  EXPECT_NEAR(first_head(weights, Mask::bias(Tensor(bias))).normalised_entropy, 1, 1e-15);
}

TEST(Telemetry, QueriesWithOneAllowedKeyTakeNoPart) {
  const Array weights = Array::of<double>({1, 1, 3, 3}, {1, 0, 0, 0.5, 0.5, 0, 0, 0, 1});
  const TelemetryOptions options{.offsets = {0}, .keys = {0}, .per_query = true};
  const Telemetry t = telemetry_of(weights, Mask::causal(), options);
  EXPECT_EQ(t.heads[0].queries, 2);
  EXPECT_NEAR(t.heads[0].entropy, std::log(2), 1e-15);
  EXPECT_EQ(t.heads[0].offsets[0].queries, 2);
  EXPECT_EQ(t.heads[0].keys[0].queries, 2);
  EXPECT_EQ(numbers(t.allowed), (std::vector<double>{1, 2, 3}));
  EXPECT_EQ(numbers(t.confidence), (std::vector<double>{1, 0.5, 1}));
}

TEST(Telemetry, OffsetsCountQueriesThatMayAttendThere) {
  // Two queries, four keys: query 0 stands at key 2, query 1 at key 3.
  const Array weights = Array::of<double>({1, 1, 2, 4}, {0.1, 0.6, 0.3, 0, 0.1, 0.2, 0.3, 0.4});
  const TelemetryOptions options{.offsets = {-3, -1, 0, 1, 9}};
  const HeadTelemetry t = first_head(weights, Mask::causal(), options);
  EXPECT_EQ(t.offsets[0].queries, 1);  // key 0 of query 1; query 0 would need key −1
  EXPECT_EQ(t.offsets[0].mass, 0.1);
  EXPECT_EQ(t.offsets[1].queries, 2);
  EXPECT_NEAR(t.offsets[1].mean_mass(), (0.6 + 0.3) / 2, 1e-15);
  EXPECT_EQ(t.offsets[1].share(), 0.5);
  EXPECT_EQ(t.offsets[2].share(), 0.5);
  EXPECT_EQ(t.offsets[3].queries, 0);  // in the future
  EXPECT_EQ(t.offsets[3].mean_mass(), 0);
  EXPECT_EQ(t.offsets[4].queries, 0);  // nowhere
  EXPECT_NEAR(t.distance, (0.1 * 2 + 0.6) + (0.1 * 3 + 0.2 * 2 + 0.3), 1e-15);
}

TEST(Telemetry, TiesGoToTheLowerAllowedKey) {
  const Array weights = row_of({0, 0.5, 0.5, 0});
  const TelemetryOptions options{.offsets = {-2, -1}, .per_query = true};
  const Telemetry t = telemetry_of(weights, {}, options);
  EXPECT_EQ(t.heads[0].offsets[0].argmax, 1);
  EXPECT_EQ(t.heads[0].offsets[1].argmax, 0);
  // A sink may take everything: then all keys tie.
  const Array mask = Array::of<std::uint8_t>({1, 4}, {0, 1, 1, 1});
  EXPECT_EQ(telemetry_of(row_of({0, 0, 0, 0}), Mask::allow(mask), options).argmax.item(), 1);
}

TEST(Telemetry, SinkMassIsOverQueriesThatMayAttendToTheKey) {
  const Array weights = Array::of<double>({1, 1, 3, 3}, {1, 0, 0, 0.25, 0.75, 0, 0.125, 0.375, 0.5});
  const HeadTelemetry t = first_head(weights, Mask::causal(), {.keys = {0, 2, 7}});
  EXPECT_EQ(t.keys[0].queries, 2);
  EXPECT_EQ(t.keys[0].mean_mass(), (0.25 + 0.125) / 2);
  EXPECT_EQ(t.keys[1].queries, 1);
  EXPECT_EQ(t.keys[1].mass, 0.5);
  EXPECT_EQ(t.keys[1].share(), 1);
  EXPECT_EQ(t.keys[2].queries, 0);
}

TEST(Telemetry, DuplicateMassIsOverQueriesWithAnEarlierCopy) {
  // Tokens a b a a: query 2 has a copy at 0, query 3 at 0 and 2; queries 0 and 1 have none.
  const Array tokens = Array::of<std::int64_t>({1, 4}, {5, 6, 5, 5});
  const Array weights = Array::of<double>(
      {1, 1, 4, 4}, {1, 0, 0, 0, 0.5, 0.5, 0, 0, 0.25, 0.5, 0.25, 0, 0.25, 0.125, 0.5, 0.125});
  const HeadTelemetry t = first_head(weights, Mask::causal(), {.tokens = tokens});
  EXPECT_EQ(t.duplicate.queries, 2);
  EXPECT_EQ(t.duplicate.mass, 0.25 + 0.75);
  const HeadTelemetry near = first_head(weights, Mask::causal() & Mask::window(2), {.tokens = tokens});
  EXPECT_EQ(near.duplicate.queries, 1);  // a copy that is blocked is none
  EXPECT_EQ(near.duplicate.mass, 0.5);
}

TEST(Telemetry, QueriesBeforeTheFirstKeyHaveNoTokenOfTheirOwn) {
  const Array weights = Array::full({1, 1, 3, 2}, 0.5, DType::f64);  // query 0 stands at key −1
  const HeadTelemetry t =
      first_head(weights, {}, {.offsets = {1}, .tokens = Array::full({1, 2}, 4, DType::i64)});
  EXPECT_EQ(t.duplicate.queries, 1);
  EXPECT_EQ(t.offsets[0].queries, 2);
}

TEST(Telemetry, LabelsCountForThemselves) {
  const Array weights = Array::of<double>({1, 1, 3, 3}, {1, 0, 0, 0.25, 0.75, 0, 0.5, 0.25, 0.25});
  const TelemetryOptions options{
      .labels = Array::of<std::int64_t>({2, 1, 3}, {0, 1, -1, -1, 2, 0}),
      .counted = Array::of<std::uint8_t>({1, 3}, {1, 0, 1}),
  };
  const HeadTelemetry t = first_head(weights, Mask::causal(), options);
  EXPECT_EQ(t.queries, 1);            // query 0 has one key, query 1 is not counted
  EXPECT_EQ(t.labels[0].queries, 1);  // query 1, though not counted; query 0 has one key
  EXPECT_EQ(t.labels[0].mass, 0.75);
  EXPECT_EQ(t.labels[0].share(), 1);
  EXPECT_EQ(t.labels[1].queries, 1);  // key 2 is blocked for query 1
  EXPECT_EQ(t.labels[1].mass, 0.5);
  EXPECT_NEAR(t.labels[1].normalised_entropy, 1.5 * std::log(2) / std::log(3), 1e-15);
}

TEST(Telemetry, ReadsEveryKindOfMask) {
  const Shape shape{2, 3, 5, 7};
  Array allow(shape, DType::u8);
  for (std::int64_t i = 0; i < allow.size(); ++i) allow.data<std::uint8_t>()[i] = i % 3 != 0;
  Array valid = Array::full({2, 7}, 1, DType::u8);
  valid.data<std::uint8_t>()[3] = 0;
  Array bias = random_array({1, 3, 5, 7}, 5);
  bias.data<double>()[11] = -infinity;
  const std::vector<Mask> masks{Mask(),
                                Mask::causal(),
                                Mask::causal_upper_left(),
                                Mask::window(2),
                                Mask::allow(allow),
                                Mask::key_lengths({3, 0}),
                                Mask::valid_keys(valid)};
  for (std::size_t m = 0; m < masks.size(); ++m) {
    SCOPED_TRACE(m);
    const Mask mask = masks[m] & Mask::bias(Tensor(bias));
    const Tensor scores(random_array(shape, 3));
    Array biased = scores.value().copy();
    for (std::int64_t i = 0; i < biased.size(); ++i) biased.data<double>()[i] += bias.at(i % bias.size());
    const Array weights = masked_softmax(Tensor(biased), masks[m]).value();
    const Telemetry t = telemetry_of(weights, mask, {.per_query = true});
    const ResolvedMask resolved(masks[m], 2, 3, 5, 7, "test");
    for (std::int64_t r = 0; r < 30; ++r) {
      std::int64_t allowed = 0;
      double distance = 0;
      for (std::int64_t j = 0; j < 7; ++j) {
        const bool open = resolved.row(r / 15, r / 5 % 3, r % 5).allows(j);
        if (open && bias.at(r % 15 * 7 + j) != -infinity) ++allowed;
        distance += weights.at(r * 7 + j) * std::abs(static_cast<double>(j - (r % 5 + 2)));
      }
      EXPECT_EQ(t.allowed.data<std::int64_t>()[r], allowed) << r;
      EXPECT_NEAR(t.distance.at(r), distance, 1e-14) << r;
      if (allowed == 0) {
        EXPECT_EQ(t.argmax.data<std::int64_t>()[r], -1);
        EXPECT_EQ(t.entropy.at(r), 0);
      }
    }
  }
}

}  // namespace
}  // namespace headlab
