#include <nlohmann/json.hpp>

#include "framework/command/console.h"
#include "framework/command/subcommands.h"
#include "framework/report/format.h"
#include "framework/report/table.h"

namespace headlab {

namespace {

nlohmann::json as_json(const Task& task) {
  nlohmann::json ladder = nlohmann::json::array();
  for (const Rung& rung : task.ladder())
    ladder.push_back({{"heads", rung.heads}, {"accuracy", rung.accuracy}});
  return {{"name", task.name()},
          {"shows", task.shows()},
          {"heads", task.needs().heads},
          {"steps", task.recipe().steps},
          {"parameters", static_cast<std::int64_t>(task.needs().parameters())},
          {"chance", task.chance()},
          {"ladder", ladder}};
}

}  // namespace

int tasks_command(const Session& session) {
  CommandLine line("tasks", "list the tasks and what each one shows");
  CommonOptions common;
  common.add_json(line.group("Options"));
  line.example("headlab tasks", "a table")
      .example("headlab tasks --json", "the same for programs, with measured accuracies per head count");
  if (!ready(line, session, common)) return 0;

  if (common.json) {
    nlohmann::json tasks = nlohmann::json::array();
    for (const auto& task : session.catalogue.tasks()) tasks.push_back(as_json(*task));
    print_json({{"tasks", tasks}});
    return 0;
  }
  Table table({{"task"}, {"heads", Align::right}, {"steps", Align::right}, {"shows"}});
  for (const auto& task : session.catalogue.tasks()) {
    table.row({task->name(), grouped(task->needs().heads), grouped(task->recipe().steps), task->shows()});
  }
  table.row({"FILE", "4", grouped(2000), "a small GPT on a text of your own: the path of any text file"});
  table.note(
      "Heads and steps unless options say otherwise. Next: headlab ablate offsets, headlab train offsets");
  print(table.str(output_terminal()));
  return 0;
}

}  // namespace headlab
