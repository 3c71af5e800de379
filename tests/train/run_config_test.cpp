#include "framework/train/run_config.h"

#include <limits>

#include <nlohmann/json.hpp>

#include "framework/data/copy.h"
#include "tests/support/training.h"

namespace headlab {
namespace {

RunConfig some_config() {
  RunConfig config = config_of(CopyTask(), 123, std::numeric_limits<std::uint64_t>::max());
  config.recipe.learning_rate = 0.1 + 0.2;
  config.recipe.schedule = Recipe::Schedule::linear;
  config.needs.positions = Needs::Positions::rotary;
  config.needs.weight_std = 1e-300;
  config.accumulation = 2;
  return config;
}

TEST(RunConfig, SurvivesTextBitForBit) {
  const RunConfig config = some_config();
  const nlohmann::json json = to_json(config);
  const RunConfig back = run_config_from_json(nlohmann::json::parse(json.dump()));
  EXPECT_EQ(to_json(back), json);
  EXPECT_EQ(back.seed, std::numeric_limits<std::uint64_t>::max());
  EXPECT_EQ(back.recipe.learning_rate, 0.1 + 0.2);
  EXPECT_EQ(back.needs.weight_std, 1e-300);
  EXPECT_EQ(back.recipe.schedule, Recipe::Schedule::linear);
  EXPECT_EQ(back.needs.positions, Needs::Positions::rotary);
  EXPECT_EQ(back.needs.architecture, Architecture::encoder_decoder);
  EXPECT_EQ(back.needs.streams.size(), 2U);
  EXPECT_EQ(back.needs.streams[1].name, config.needs.streams[1].name);
}

// A forgotten field would make two different trainings look the same. Changing any number or choice of the
// JSON must change the struct that is read from it.
TEST(RunConfig, EveryFieldIsRead) {
  const nlohmann::json json = to_json(some_config());
  const nlohmann::json flat = json.flatten();
  for (const auto& entry : flat.items()) {
    nlohmann::json changed = json;
    nlohmann::json& value = changed[nlohmann::json::json_pointer(entry.key())];
    if (value.is_boolean()) {
      value = !value.get<bool>();
    } else if (value.is_number_float()) {
      value = value.get<double>() + 1;
    } else if (value.is_number()) {
      value = 77;
    } else {
      continue;
    }
    EXPECT_EQ(to_json(run_config_from_json(changed)), changed) << entry.key();
  }
}

TEST(RunConfig, FieldsThatCameLaterAreWrittenOnlyWhereTheySaySomething) {
  const nlohmann::json plain = to_json(some_config());
  EXPECT_FALSE(plain["needs"].contains("patch_width"));
  const std::vector<std::pair<const char*, nlohmann::json>> later{{"patch_width", 16},
                                                                  {"class_token", true},
                                                                  {"class_std", 0.25},
                                                                  {"pooled", true},
                                                                  {"smeared_keys", true}};
  for (const auto& [name, value] : later) {
    nlohmann::json json = plain;
    json["needs"][name] = value;
    EXPECT_EQ(to_json(run_config_from_json(json)), json) << name;
    json["needs"][name] = "3";
    EXPECT_NE(error_of([&] { run_config_from_json(json); }), "") << name;
  }
}

TEST(RunConfig, ErrorsNameTheField) {
  const auto error_with = [](const char* pointer, const nlohmann::json& value) {
    nlohmann::json json = to_json(some_config());
    json[nlohmann::json::json_pointer(pointer)] = value;
    return error_of([&] { run_config_from_json(json); });
  };
  EXPECT_EQ(error_with("/needs/heads", 2.5), "config: needs.heads: 2.5 is not an integer of 64 bits");
  EXPECT_EQ(error_with("/needs/heads", "4"), "config: needs.heads: \"4\" is not an integer of 64 bits");
  EXPECT_EQ(error_with("/needs/heads", true), "config: needs.heads: true is not an integer of 64 bits");
  EXPECT_EQ(error_with("/needs/heads", 1ULL << 63),
            "config: needs.heads: 9223372036854775808 is not an integer of 64 bits");
  EXPECT_EQ(error_with("/seed", -1), "config: seed: -1 is not an integer from 0 to 2^64 - 1");
  EXPECT_EQ(error_with("/recipe/beta1", nullptr), "config: recipe.beta1: null is not a number");
  EXPECT_EQ(error_with("/needs/causal", 1), "config: needs.causal: 1 is not true or false");
  EXPECT_EQ(error_with("/needs/positions", "learnt"),
            "config: needs.positions: \"learnt\" is not one of none, learned, rotary, relative");
  EXPECT_EQ(error_with("/needs/streams/1/name", 3), "config: needs.streams[1].name: 3 is not a text");
  EXPECT_EQ(error_with("/needs/streams", 3), "config: needs.streams: 3 is not a list");
  EXPECT_EQ(error_with("/recipe", 3), "config: recipe: 3 is not an object");
  EXPECT_EQ(error_with("/recipe/speed", 3), "config: recipe.speed is unknown");
  nlohmann::json json = to_json(some_config());
  json["needs"].erase("d_model");
  EXPECT_EQ(error_of([&] { run_config_from_json(json); }), "config: needs.d_model is missing");
  EXPECT_EQ(error_of([&] { run_config_from_json(nlohmann::json::array()); }), "config: is not a JSON object");
}

TEST(RunConfig, TheFirstDifferenceIsNamed) {
  const RunConfig a = some_config();
  RunConfig b = a;
  EXPECT_NO_THROW(check_same(to_json(a), to_json(b), "resume", "A", "B"));
  b.needs.heads = 8;
  EXPECT_EQ(error_of([&] { check_same(to_json(a), to_json(b), "resume", "A", "B"); }),
            "resume: needs.heads is 4 in A and 8 in B");
  b = a;
  b.needs.readouts.push_back({"more", 3});
  EXPECT_EQ(error_of([&] { check_same(to_json(a), to_json(b), "resume", "A", "B"); }),
            "resume: needs.readouts.1.classes is absent in A and 3 in B");
}

TEST(RunConfig, ContradictionsAreRefusedBeforeAnyWork) {
  const TinyTask task;
  const auto error_with = [&](const auto& change) {
    RunConfig config = config_of(task, 10);
    change(config);
    return error_of([&] { train_new(task, config); });
  };
  EXPECT_EQ(error_with([](RunConfig& c) { c.accumulation = 4; }),
            "train: accumulation 4 does not divide the batch of 6 examples");
  EXPECT_EQ(error_with([](RunConfig& c) { c.accumulation = 0; }), "train: accumulation 0 must be at least 1");
  EXPECT_EQ(error_with([](RunConfig& c) { c.recipe.batch = 0; }), "train: batch 0 must be at least 1");
  EXPECT_EQ(error_with([](RunConfig& c) { c.recipe.steps = 0; }), "train: steps 0 must be at least 1");
  EXPECT_EQ(error_with([](RunConfig& c) { c.recipe.warmup_steps = 11; }),
            "train: warmup_steps 11 must be in 0 to 10, the steps");
  EXPECT_EQ(error_with([](RunConfig& c) { c.recipe.clip = 0; }),
            "train: clip 0 must be a finite number above 0");
  EXPECT_EQ(error_with([](RunConfig& c) { c.recipe.floor_share = 1.5; }),
            "train: floor_share 1.5 must be in [0, 1]");
}

TEST(RunConfig, TheModelMustBeTheOneOfTheConfig) {
  const TinyTask task;
  RunConfig config = config_of(task, 10);
  const auto model = build_model(config.needs);
  config.needs.heads = 1;
  EXPECT_EQ(error_of([&] { train(*model, task, config); }),
            "train: heads is 3 in the model and 1 in the config");
}

}  // namespace
}  // namespace headlab
