#include <algorithm>

#include <nlohmann/json.hpp>

#include "framework/command/console.h"
#include "framework/command/subcommands.h"
#include "framework/core/suggest.h"
#include "framework/report/table.h"
#include "framework/train/conformance.h"

namespace headlab {

namespace {

const KnownLayer& required_layer(const Catalogue& catalogue, const std::string& name) {
  if (const KnownLayer* layer = catalogue.find_layer(name)) return *layer;
  std::vector<std::string> names;
  std::string list;
  for (const KnownLayer& layer : catalogue.layers()) {
    names.push_back(layer.name);
    list += (list.empty() ? "" : ", ") + layer.name;
  }
  throw UsageError(fmt::format("no layer '{}'{}; there {}", printable(name), did_you_mean(name, names),
                               names.empty() ? std::string("are none: add one to the catalogue")
                                             : (names.size() == 1 ? "is " : "are ") + list));
}

std::string shapes(const std::vector<LayerInput>& inputs) {
  std::string text;
  for (const LayerInput& input : inputs)
    text += fmt::format("{}{}{}", text.empty() ? "" : ", ", input.ids > 0 ? "ids " : "", input.shape);
  return text.empty() ? "no inputs" : text;
}

nlohmann::json as_json(const KnownLayer& layer, const Conformance& found) {
  nlohmann::json checks = nlohmann::json::array();
  for (const ConformanceCheck& check : found.checks)
    checks.push_back({{"name", check.name}, {"passed", check.passed}, {"detail", check.detail}});
  return {{"layer", layer.name},
          {"passed", found.passed()},
          {"checks", checks},
          {"parameters", found.cost.parameters},
          {"allocations", found.cost.allocations},
          {"ms", found.cost.milliseconds},
          {"flops", found.cost.flops}};
}

std::string as_text(const KnownLayer& layer, const Conformance& found) {
  Table table({{"check"}, {""}, {"what was seen"}});
  table.title(fmt::format("Layer {} on {}", layer.name, shapes(layer.inputs)));
  std::int64_t failed = 0;
  for (const ConformanceCheck& check : found.checks) {
    table.row({check.name, check.passed ? "pass" : "FAIL", check.passed ? check.detail : ""});
    failed += check.passed ? 0 : 1;
  }
  std::string text = table.str(output_terminal());
  // Messages in full: a table may have to shorten them.
  for (const ConformanceCheck& check : found.checks) {
    if (!check.passed) text += fmt::format("{}: {}\n", check.name, check.detail);
  }
  return text + (failed == 0
                     ? fmt::format("The layer {} can be trained, saved and looked at like headlab's own.\n",
                                   layer.name)
                     : fmt::format("The layer {} is not sound: {} of {} checks failed.\n", layer.name, failed,
                                   found.checks.size()));
}

}  // namespace

int check_layer_command(const Session& session) {
  CommandLine line("check-layer", "check a layer: gradients, files, threads, memory, time");
  std::optional<std::string> name;
  CommonOptions common;
  line.argument("NAME", name, "a layer of the catalogue; without it, they are listed", false);
  common.add_threads(line.group("Options"));
  common.add_seed(line, "of parameters and inputs");
  common.add_json(line);
  line.example("headlab check-layer attention", "everything that training and the laboratory rely on")
      .example("build/release/examples/custom_layer check-layer smeared",
               "a layer that a program of one's own put into its catalogue");
  if (!ready(line, session, common)) return 0;

  if (!name) {
    if (common.json) {
      nlohmann::json layers = nlohmann::json::array();
      for (const KnownLayer& layer : session.catalogue.layers())
        layers.push_back({{"name", layer.name}, {"shows", layer.shows}});
      print_json({{"layers", layers}});
      return 0;
    }
    Table table({{"layer"}, {"inputs"}, {"what it is"}});
    for (const KnownLayer& layer : session.catalogue.layers())
      table.row({layer.name, shapes(layer.inputs), layer.shows});
    table.note("Next: headlab check-layer NAME. Layers of one's own: Catalogue::add(known_layer<…>(…))");
    print(table.str(output_terminal()));
    return 0;
  }
  const KnownLayer& layer = required_layer(session.catalogue, *name);
  const Conformance found = check_conformance(layer, common.seed_number());
  if (common.json) {
    print_json(as_json(layer, found));
  } else {
    print_for_people(as_text(layer, found));
  }
  return found.passed() ? 0 : 1;
}

}  // namespace headlab
