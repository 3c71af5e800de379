#include "framework/command/run.h"

#include <algorithm>
#include <array>
#include <exception>
#include <new>
#include <string>
#include <vector>

#include "framework/command/console.h"
#include "framework/command/subcommands.h"
#include "framework/core/suggest.h"

namespace headlab {

namespace {

struct SubCommand {
  std::string_view name, arguments, summary;
  int (*run)(const Session&);
};

constexpr std::array<SubCommand, 12> sub_commands{{
    {"tasks", "", "list the tasks and what each one shows", tasks_command},
    {"train", "TASK|FILE", "train a model on a task or on a text file", train_command},
    {"sample", "RUN", "let a model trained on text write on", sample_command},
    {"ablate", "[TASK|FILE]", "compare head counts over several seeds", ablate_command},
    {"inspect", "RUN", "show what each head of a trained model does", inspect_command},
    {"knockout", "RUN", "switch heads of a trained model off and see what is lost", knockout_command},
    {"lifeline", "RUN", "when in a training each head found its role", lifeline_command},
    {"reproduce", "[TASK...]", "train what the tasks claim, and say which claims hold", reproduce_command},
    {"prune", "RUN", "remove heads of a trained model for good, and save what is left", prune_command},
    {"check-layer", "NAME", "check a layer: gradients, files, threads, memory, time", check_layer_command},
    {"verify", "", "check that this machine computes the same bits as others", verify_command},
    {"bench", "", "measure speed on fixed shapes, beside the machine's limit", bench_command},
}};

std::string overview() {
  std::string text =
      "headlab: a laboratory for attention heads\n\nUsage: headlab SUB-COMMAND [arguments]\n\n";
  for (const SubCommand& command : sub_commands) {
    text += fmt::format("  {:<11} {:<13} {}\n", command.name, command.arguments, command.summary);
  }
  return text +
         "\nheadlab SUB-COMMAND --help lists its options.\n\nExamples:\n"
         "  headlab ablate offsets --heads 1,4,8,16 --seeds 5\n"
         "      one look-up per head: eight answers at once need eight heads\n"
         "  headlab train induction\n"
         "  headlab inspect runs/induction\n"
         "      train one model and see what its heads have learned\n"
         "  headlab train shakespeare.txt --steps 500\n"
         "  headlab sample runs/shakespeare --prompt 'The '\n"
         "      a small GPT on a text of your own\n";
}

const SubCommand* find(std::string_view name) {
  const auto found = std::find_if(sub_commands.begin(), sub_commands.end(),
                                  [&](const SubCommand& command) { return command.name == name; });
  return found == sub_commands.end() ? nullptr : &*found;
}

const SubCommand& required(const std::string& name) {
  if (const SubCommand* command = find(name)) return *command;
  if (name.starts_with("-")) {
    throw UsageError(
        fmt::format("'{}' stands before the sub-command; options go behind it: headlab train TASK {}",
                    printable(name), printable(name)));
  }
  std::vector<std::string> names;
  names.reserve(sub_commands.size());
  for (const SubCommand& command : sub_commands) names.emplace_back(command.name);
  throw UsageError(
      fmt::format("no sub-command '{}'{}; see headlab --help", printable(name), did_you_mean(name, names)));
}

int run(std::vector<std::string> arguments, const Catalogue& catalogue, std::string& where) {
  if (arguments.empty()) throw UsageError("no sub-command; see headlab --help");
  const std::string first = arguments.front();
  if (first == "--help" || first == "-h" || (first == "help" && arguments.size() == 1)) {
    print_for_people(overview());
    return 0;
  }
  if (first == "--version") {
    print("headlab " HEADLAB_VERSION "\n");
    return 0;
  }
  if (first == "help") arguments = {arguments[1], "--help"};
  const SubCommand& command = required(arguments.front());
  where.append(" ").append(command.name);
  return command.run({catalogue, std::span(arguments).subspan(1)});
}

}  // namespace

int run_command(int argc, char** argv, const Catalogue& catalogue) {
  std::string where = "headlab";
  const auto complain_of = [&](std::string_view what) {
    // "headlab train: train: the loss …" would say it twice.
    const std::string again = where.substr(where.rfind(' ') + 1) + ": ";
    if (what.starts_with(again)) what.remove_prefix(again.size());
    complain(fmt::format("{}: {}", where, what));
  };
  try {
    prepare_console();
    const int status = run(std::vector<std::string>(argv + std::min(argc, 1), argv + argc), catalogue, where);
    flush_output();
    return status;
  } catch (const UsageError& error) {
    complain_of(error.what());
    return 2;
  } catch (const std::bad_alloc&) {
    complain_of("there is not enough memory");
  } catch (const std::exception& error) {
    complain_of(error.what());
  }
  return 1;
}

}  // namespace headlab
