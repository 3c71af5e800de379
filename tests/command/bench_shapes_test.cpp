#include "framework/command/bench_shapes.h"

#include <gtest/gtest.h>

#include "framework/command/bench_case.h"
#include "framework/files/atomic_file.h"
#include "tests/support/errors.h"

namespace headlab {
namespace {

TEST(BenchShapes, TheShippedOnesAreThoseOfTheComparison) {
  const BenchShapes shapes = parse_shapes(shipped_shapes(), "shipped");
  ASSERT_EQ(shapes.attention.size(), 8u);
  EXPECT_EQ(shapes.attention[7].name, "long-4k");
  EXPECT_EQ(shapes.attention[7].tokens, 4096);
  EXPECT_TRUE(shapes.attention[7].causal);
  ASSERT_EQ(shapes.training.size(), 4u);
  EXPECT_EQ(shapes.training[3].name, "gpt2-124M");
  EXPECT_EQ(shapes.training[3].vocabulary, 50257);
  EXPECT_NEAR(training_needs(shapes.training[3]).parameters(), 124e6, 1e6);  // its context is 64
  EXPECT_EQ(shipped_shapes(), read_file(HEADLAB_SOURCE "/framework/command/bench_shapes.json"));
}

TEST(BenchShapes, ErrorsNameFileCaseAndKey) {
  const auto error = [](const std::string& text) { return error_of([&] { parse_shapes(text, "s.json"); }); };
  const auto mha = [&](const std::string& fields) {
    return error(R"({"mha": [{"name": "x", "B": 2, "T": 3, )" + fields + "}]}");
  };
  EXPECT_EQ(error("{"), "s.json: not JSON at byte 2");
  EXPECT_EQ(error("[]"), "s.json: holds no object but array");
  EXPECT_EQ(error("{}"), "s.json: holds no cases");
  EXPECT_EQ(error(R"({"tain": []})"),
            "s.json: unknown key 'tain' (did you mean 'train'?) (allowed: mha, train)");
  EXPECT_EQ(error(R"({"mha": {}})"), "s.json: 'mha' is no list but object");
  EXPECT_EQ(error(R"({"mha": [7]})"), "s.json: mha case 1: is no object but number");
  EXPECT_EQ(error(R"({"train": [{}]})"), "s.json: train case 1: 'name' is missing");
  EXPECT_EQ(error(R"({"mha": [{"name": "a,b"}]})"),
            "s.json: mha case 1 'a,b': the name holds a comma, which --only splits at");
  EXPECT_EQ(mha(R"("d": 8, "h": 2)"), "s.json: mha case 1 'x': 'causal' is missing");
  EXPECT_EQ(mha(R"("d": 8, "h": 3, "causal": true)"), "s.json: mha case 1 'x': 'h' 3 does not divide 'd' 8");
  EXPECT_EQ(mha(R"("d": 8, "h": 0, "causal": true)"),
            "s.json: mha case 1 'x': 'h' is 0 (allowed: whole numbers 1 … 1000000000)");
  EXPECT_EQ(mha(R"("d": 8.5)"), "s.json: mha case 1 'x': 'd' is 8.5 (allowed: whole numbers 1 … 1000000000)");
  EXPECT_EQ(mha(R"("d": 8, "h": 2, "causal": 1)"),
            "s.json: mha case 1 'x': 'causal' is 1 (allowed: true, false)");
  EXPECT_EQ(mha(R"("d": 8, "h": 2, "causal": true, "V": 3)"),
            "s.json: mha case 1 'x': unknown key 'V' (allowed: name, B, T, d, h, causal)");
  const std::string one = R"({"name": "x", "B": 2, "T": 3, "d": 8, "h": 2, "causal": true})";
  EXPECT_EQ(error(R"({"mha": [)" + one + "," + one + "]}"),
            "s.json: mha case 2 'x': an earlier case has that name");
}

TEST(BenchShapes, WhatMemoryCannotHoldIsRefusedBeforeItIsAllocated) {
  const AttentionShape huge{"huge", 1'000'000, 1'000'000, 1024, 1, false};
  EXPECT_EQ(error_of([&] { attention_case(huge, false).prepare(); }).find("mha 'huge': about "), 0u);
}

}  // namespace
}  // namespace headlab
