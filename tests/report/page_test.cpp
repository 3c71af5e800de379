#include "framework/report/page.h"

#include <algorithm>
#include <filesystem>
#include <limits>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "framework/files/atomic_file.h"
#include "framework/files/json_file.h"
#include "framework/report/chart.h"
#include "framework/report/html.h"
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

TEST(Html, TextCannotBecomeMarkup) {
  EXPECT_EQ(escaped("<a href=\"x\">'&'</a>\n"), "&lt;a href=&quot;x&quot;&gt;&#39;&amp;&#39;&lt;/a&gt;↵");
}

TEST(Html, ANumberKeepsItsExactValue) {
  EXPECT_EQ(html_number(0.20705, 3), R"(<data value="0.20705">0.207</data>)");
  EXPECT_EQ(html_number(std::numeric_limits<double>::quiet_NaN()), "–");
  EXPECT_EQ(html_p(0.00012), R"(<data value="0.00012">&lt; 0.001</data>)");
  EXPECT_EQ(html_digits(0.00012345), R"(<data value="0.00012345">0.000123</data>)");
}

TEST(Html, ARowHasACellForEachColumn) {
  HtmlTable table("t", {{"a"}, {"b"}});
  EXPECT_EQ(error_of([&] { table.row({"1"}); }), "html table: a row has 1 cells for 2 columns");
}

TEST(Chart, LeavesAGapWhereANumberIsMissing) {
  const double none = std::numeric_limits<double>::quiet_NaN();
  const std::string svg =
      chart_svg({.title = "t", .series = {{.line = {{1, 1}, {2, none}, {3, 2}, {4, 1}}}}});
  const std::size_t path = svg.find("<path");
  ASSERT_NE(path, std::string::npos);
  const std::string drawn = svg.substr(path, svg.find("/>", path) - path);
  EXPECT_EQ(std::count(drawn.begin(), drawn.end(), 'M'), 2);
  EXPECT_EQ(svg.find("nan"), std::string::npos);
}

TEST(Chart, RefusesWhatItCannotDraw) {
  EXPECT_EQ(error_of([] {
              chart_svg({.log_x = true, .series = {{.line = {{0, 1}}}}});
            }),
            "chart: x is 0 on a logarithmic axis");
  EXPECT_EQ(error_of([] {
              chart_svg({.series = {{.line = {{0, 1}}, .low = {1, 2}, .high = {1, 2}}}});
            }),
            "chart: a band has 2 and 2 ends for 1 points");
}

TEST(Matrix, ShowsEveryValueAndLeavesOutWhatIsNone) {
  const double none = std::numeric_limits<double>::quiet_NaN();
  const std::string svg =
      matrix_svg({.title = "t", .rows = {"r"}, .columns = {"a", "b"}, .values = {0.25, none}});
  EXPECT_NE(svg.find("r · a: 0.250"), std::string::npos);
  EXPECT_EQ(svg.find("r · b"), std::string::npos);
  EXPECT_EQ(error_of([] { matrix_svg({.rows = {"r"}, .columns = {"a"}, .values = {}}); }),
            "matrix: 0 values for 1 rows and 1 columns");
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
  save_result(folder.path(), "knockout.json",
              {{"how", "mean"},
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
                  {"importance", {{"example", 0.125}, {"effect", -0.5}}}}}}},
              {});
  const std::string after = read_file(write_page(folder.path())[0]);
  EXPECT_NE(after.find("id=\"knockout\""), std::string::npos);
  EXPECT_NE(after.find("id=\"levels\""), std::string::npos);
  EXPECT_NE(after.find(R"(<data value="0.0625">0.0625</data>)"), std::string::npos);
}

TEST(Page, ShowsASmallerModel) {
  const TemporaryFolder folder;
  const Json prune = {{"keep", 0.5},
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
