#include <fstream>

#include <nlohmann/json.hpp>

#include "framework/train/generate.h"
#include "framework/train/run.h"
#include "tests/command/support.h"

namespace headlab {
namespace {

// Longer than the context, so that the window slides in the end.
TEST_F(CommandTest, SampleWritesTheTextThatComesWithoutACacheToo) {
  std::ofstream file("mill.txt");
  for (int i = 0; i < 60; ++i) file << "The miller grinds " << i << " sacks a day.\n";
  file.close();
  const Outcome trained = run({"train", "mill.txt", "--steps", "5", "--d-model", "16", "--layers", "2",
                               "--context", "32", "--out", "mill"});
  ASSERT_EQ(trained.status, 0) << trained.err;
  const Outcome sampled =
      run({"sample", "mill", "--prompt", "The m", "--tokens", "60", "--seed", "3", "--json"});
  ASSERT_EQ(sampled.status, 0) << sampled.err;
  Catalogue catalogue;
  catalogue.build_with(build_model);
  const LoadedRun loaded = load_run("mill", catalogue);
  const std::vector<std::int64_t> prompt = loaded.vocabulary->encode("The m");
  const auto text = [&](bool cache) {
    return loaded.vocabulary->decode(generate(
        *loaded.model, prompt, {.sampling = {.temperature = 0.8}, .tokens = 60, .seed = 3, .cache = cache}));
  };
  EXPECT_EQ(nlohmann::json::parse(sampled.out).at("text").get<std::string>(), text(false));
  EXPECT_EQ(text(true), text(false));
}

}  // namespace
}  // namespace headlab
