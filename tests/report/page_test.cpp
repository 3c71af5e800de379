#include "framework/report/page.h"

#include <filesystem>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "framework/files/atomic_file.h"
#include "framework/files/json_file.h"
#include "framework/report/made_by.h"
#include "tests/support/errors.h"
#include "tests/support/temporary_folder.h"

namespace headlab {
namespace {

using Json = nlohmann::json;

Json sweep() {
  const auto level = [](int heads, double accuracy, Json difference) {
    return Json{{"heads", heads},
                {"n", 2},
                {"accuracy", {{"mean", accuracy}, {"ci95", {accuracy - 0.125, accuracy + 0.125}}}},
                {"loss", {{"mean", 2 - accuracy}, {"ci95", nullptr}}},
                {"difference", std::move(difference)},
                {"parameters", 36352},
                {"d_head", 64 / heads},
                {"confidence", {{"mean", 0.5}, {"ci95", nullptr}}},
                {"normalised_entropy", {{"mean", 0.25}, {"ci95", nullptr}}},
                {"clean_heads", {{"mean", 1.0}, {"ci95", nullptr}}},
                {"cover", {{"mean", 1.0}, {"ci95", nullptr}}},
                {"prototype", nullptr}};
  };
  return {{"task", "offsets"},
          {"finding", "More heads <help>."},
          {"levels",
           {level(1, 0.25, nullptr),
            level(4, 0.75, {{"mean", 0.5}, {"ci95", {0.375, 0.625}}, {"adjusted_p", 0.0001}})}},
          {"runs",
           {{{"heads", 1}, {"accuracy", 0.1875}, {"failure", nullptr}, {"curve", {3.0, 2.0}}},
            {{"heads", 4}, {"failure", "the loss is not finite"}}}},
          {"knockout", nullptr}};
}

Json knocked_out(const char* how, const char* path) {
  return {{"how", how},
          {"path", path},
          {"finding", "1 head matters."},
          {"accuracy", 0.5},
          {"loss", 1.0},
          {"sequences", 512},
          {"heads",
           {{{"head", "0.1"},
             {"loss_added", 0.5},
             {"interval", 0.0625},
             {"accuracy_lost", 0.25},
             {"p_holm", 0.5},
             {"matters", false},
             {"lost_by", {{"t-1", 0.25}}},
             {"lost_by_interval", {{"t-1", 0.03125}}},
             {"importance", {{"example", 0.125}, {"effect", -0.5}}}}}}};
}

Json smaller() {
  return {{"keep", 0.5},
          {"lambda", nullptr},
          {"finding", "2 of 4 heads keep 50 % of the accuracy."},
          {"heads", {{"before", 4}, {"after", 2}}},
          {"gates", {{"0.10", 1.0}, {"0.2", 0.0}, {"1.0", 0.75}, {"1.1", 0.0}}},
          {"importance", nullptr},
          {"parameters", {{"before", 36352.0}, {"after", 18176.0}}},
          {"accuracy", {{"before", 1.0}, {"after", 0.5}}},
          {"loss", {{"before", 0.125}, {"after", 0.375}}},
          {"loss_added", 0.25},
          {"interval", 0.0625},
          {"seconds", {{"before", 0.5}, {"after", 0.25}}},
          {"times_as_fast", 2.0},
          {"accuracy_at_random", {{"n", 20}, {"mean", 0.3125}, {"best", 0.4375}}},
          {"file", "run/<pruned>.safetensors"}};
}

TEST(Page, ShowsWhatTheFilesOfASweepSay) {
  const TemporaryFolder folder;
  save_result(folder.path(), "results.json", sweep(), {"headlab ablate offsets --heads '1,4'", "1.2.3"});
  const auto files = write_page(folder.path(), {.pictures = true});
  ASSERT_GE(files.size(), 2U);
  const std::string page = read_file(files[0]);
  EXPECT_NE(page.find("More heads &lt;help&gt;."), std::string::npos);
  EXPECT_NE(page.find(R"(<data value="0.75">0.750</data> [<data value="0.625">0.625</data>)"),
            std::string::npos);
  EXPECT_NE(page.find(R"(<data value="0.0001">&lt; 0.001</data>)"), std::string::npos);
  EXPECT_NE(page.find("failed"), std::string::npos);
  EXPECT_NE(page.find("headlab ablate offsets --heads &#39;1,4&#39;"), std::string::npos);
  EXPECT_NE(page.find("1.2.3"), std::string::npos);
  EXPECT_NE(read_file(folder.path() / "accuracy.svg").find("<style>"), std::string::npos);
}

TEST(Page, GrowsWithEachResult) {
  const TemporaryFolder folder;
  save_result(folder.path(), "results.json", sweep(), {});
  const std::string before = read_file(write_page(folder.path())[0]);
  EXPECT_EQ(before.find("id=\"knockout\""), std::string::npos);
  save_result(folder.path(), "knockout.json", knocked_out("zero", "all"), {});
  const std::string after = read_file(write_page(folder.path())[0]);
  EXPECT_NE(after.find("id=\"knockout\""), std::string::npos);
  EXPECT_NE(after.find("id=\"levels\""), std::string::npos);
  EXPECT_NE(after.find(R"(<data value="0.0625">0.0625</data>)"), std::string::npos);
  EXPECT_NE(after.find("0.1 · t-1: 0.250 ± 0.031"), std::string::npos);
  EXPECT_NE(after.find(R"(<data value="0.25">0.250</data> ± <data value="0.03125">)"), std::string::npos);
}

TEST(Page, ShowsKnockOutsOfAllKindsSideBySide) {
  const TemporaryFolder folder;
  EXPECT_EQ(knockout_file("knockout", "zero", "all"), "knockout.json");
  EXPECT_EQ(knockout_file("knockout-sets", "mean", "all"), "knockout-sets-mean.json");
  EXPECT_EQ(knockout_file("knockout", "zero", "k"), "knockout-zero-k.json");
  for (const auto& [how, path] :
       {std::pair("zero", "all"), std::pair("mean", "all"), std::pair("zero", "k")}) {
    save_result(folder.path(), knockout_file("knockout", how, path), knocked_out(how, path), {});
  }
  const auto files = write_page(folder.path(), {.pictures = true});
  const std::string page = read_file(files[0]);
  for (const char* text : {"id=\"knockout\"", "id=\"knockout-mean-all\"", "id=\"knockout-zero-k\"",
                           "<h2>Interventions on single heads (path k)</h2>", "<p>1 head matters.</p>",
                           "<p>Knocked out by mean: 1 head matters.</p>"}) {
    EXPECT_NE(page.find(text), std::string::npos) << text;
  }
  EXPECT_EQ(files.size(), 4U);
}

TEST(Page, ShowsASmallerModel) {
  const TemporaryFolder folder;
  const Json prune = smaller();
  save_result(folder.path(), "prune.json", prune, {"headlab prune run --keep 0.5", "1.2.3"});
  const std::string page = read_file(write_page(folder.path())[0]);
  for (const char* text : {"id=\"prune\"", "2 of 4 heads keep 50 % of the accuracy.",
                           R"(<data value="18176">18 176</data>)", R"(± <data value="0.0625">)",
                           R"(<data value="0.4375">)", "&lt;pruned&gt;", "headlab prune run --keep 0.5"}) {
    EXPECT_NE(page.find(text), std::string::npos) << text;
  }
  // By number, not by letter.
  EXPECT_LT(page.find("<th scope=\"row\">0.2"), page.find("<th scope=\"row\">0.10"));
  Json odd = prune;
  odd["gates"] = {{"first", 1.0}};
  write_json(folder.path() / "prune.json", odd);
  EXPECT_EQ(error_of([&] { write_page(folder.path()); }), "prune.json: 'first' is not the name of a head");
}

TEST(Page, NamesACommandOnceForAllItsFiles) {
  const TemporaryFolder folder;
  const MadeBy by{"headlab train offsets", "1.2.3"};
  save_result(folder.path(), "train.json", {{"finding", "After 3 steps <nothing>."}}, by);
  save_result(folder.path(), "attention.json", {{"examples", Json::array()}}, by);
  save_result(folder.path(), "prune.json", smaller(), {"headlab prune run --keep 0.5", "1.2.3"});
  const std::string page = read_file(write_page(folder.path())[0]);
  EXPECT_NE(page.find("<p>Training, Attention: <code>headlab train offsets</code> (version 1.2.3)</p>"),
            std::string::npos);
  EXPECT_NE(page.find("<p>Pruning: <code>headlab prune run"), std::string::npos);
  EXPECT_LT(page.find("<p>After 3 steps &lt;nothing&gt;.</p>"), page.find("<p>2 of 4 heads keep"));
}

// A token may hold what would end a script.
TEST(Page, TokensCannotLeaveTheirScript) {
  const TemporaryFolder folder;
  Array weights = Array::zeros({1, 1, 1}, DType::u8);
  weights.data<std::uint8_t>()[0] = 255;
  LayerMaps layer{"blocks.0.attn", AttentionSite::self, {"</script><b>"}, {"</script><b>"}, weights};
  save_result(folder.path(), "attention.json", attention_maps_json({{7, {layer}}}), {});
  const std::string page = read_file(write_page(folder.path())[0]);
  EXPECT_EQ(page.find("</script><b>"), std::string::npos);
  EXPECT_NE(page.find("&lt;/script&gt;&lt;b&gt; 1.00"), std::string::npos);
}

TEST(Page, AFileThatIsNotWhatItsNameSaysIsNamed) {
  const TemporaryFolder folder;
  write_json(folder.path() / "results.json", {{"task", "offsets"}});
  EXPECT_NE(
      error_of([&] { write_page(folder.path()); }).find("results.json: is not what headlab writes there"),
      std::string::npos);
  EXPECT_FALSE(std::filesystem::exists(folder.path() / page_name));
}

}  // namespace
}  // namespace headlab
