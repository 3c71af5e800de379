#include "framework/report/profile.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "framework/files/json_file.h"
#include "tests/support/errors.h"
#include "tests/support/temporary_folder.h"

namespace headlab {
namespace {

using profile::Pass;

profile::Profile example() {
  profile::Profile p;
  p.lines = {{"linear", Pass::forward, "blocks.0.mlp.up", 2, 0.25, 5e9, 1e9},
             {"linear", Pass::forward, "blocks.1.mlp.up", 1, 0.25, 5e9, 1e9},
             {"linear", Pass::backward, "blocks.1.mlp.up", 1, 1, 20e9, 4e9},
             {"", Pass::forward, "blocks.1", 1, 0.25, 0, 0},
             {"adamw", Pass::none, "", 1, 0.125, 0, 1e9},
             {"step", Pass::none, "", 1, 0.125, 0, 0}};
  return p;
}

TEST(ProfileTables, ShowOperationsAndLayersTheLongestFirst) {
  EXPECT_EQ(profile_tables(example()), R"(Where the time went, by operation
─────────────────────────────────────────────────────────────────────────
 operation              calls     time    share   GFLOP/s   GB/s   moved
─────────────────────────────────────────────────────────────────────────
 linear backward            1      1 s   50.0 %      20.0    4.0    4 GB
 linear                     3   500 ms   25.0 %      20.0    4.0    2 GB
 (between operations)       –   375 ms   18.8 %         –      –       –
 adamw                      1   125 ms    6.2 %         –    8.0    1 GB
─────────────────────────────────────────────────────────────────────────
 all                               2 s               15.0    3.5    7 GB
─────────────────────────────────────────────────────────────────────────

By layer, without the layers inside it
────────────────────────────────────────────────────────────────────────
 layer             forward   backward    share   GFLOP/s   GB/s   moved
────────────────────────────────────────────────────────────────────────
 blocks.*.mlp.up    500 ms        1 s   75.0 %      20.0    4.0    6 GB
 blocks.*           250 ms        0 s   12.5 %         –      –       –
────────────────────────────────────────────────────────────────────────
)");
  EXPECT_NE(profile_tables({}).find(" all "), std::string::npos);
}

TEST(ProfileTrace, IsWhatTraceViewersRead) {
  const TemporaryFolder folder;
  profile::Profile p;
  const auto id = [](const char* name) { return profile::detail::id_of(name); };
  p.events = {{id("linear"), id("blocks.0.\"quoted\""), Pass::backward, 1500, 3500, 4000, 1000},
              {0, id("blocks.0"), Pass::forward, 1000, 4000, 0, 0},
              {id("step"), 0, Pass::none, 0, 5000, 0, 0}};
  write_trace(folder.path() / "trace.json", p);
  const auto json = read_json(folder.path() / "trace.json");
  const auto& events = json.at("traceEvents");
  ASSERT_EQ(events.size(), 3u);
  EXPECT_EQ(events[0]["name"], "linear backward");
  EXPECT_EQ(events[0]["cat"], "backward");
  EXPECT_EQ(events[0]["ph"], "X");
  EXPECT_EQ(events[0]["ts"], 1.5);  // microseconds
  EXPECT_EQ(events[0]["dur"], 2.0);
  EXPECT_EQ(events[0]["args"]["layer"], "blocks.0.\"quoted\"");
  EXPECT_EQ(events[0]["args"]["GFLOP/s"], 2.0);
  EXPECT_EQ(events[0]["args"]["GB/s"], 0.5);
  EXPECT_EQ(events[1]["name"], "blocks.0");
  EXPECT_EQ(events[2]["name"], "step");
  EXPECT_EQ(events[2]["cat"], "phase");

  write_trace(folder.path() / "trace.json", {});
  EXPECT_TRUE(read_json(folder.path() / "trace.json").at("traceEvents").empty());
  EXPECT_NE(error_of([&] { write_trace(folder.path() / "no" / "trace.json", {}); }), "");
}

}  // namespace
}  // namespace headlab
