#include <nlohmann/json.hpp>

#include "framework/command/console.h"
#include "framework/command/subcommands.h"
#include "framework/core/check.h"
#include "framework/train/generate.h"
#include "framework/train/run.h"

namespace headlab {

namespace {

struct Options {
  CommonOptions common;
  std::optional<std::string> run, prompt;
  std::int64_t tokens = 400;
  double temperature = 0.8;
  std::int64_t top_k = 0;
};

CommandLine declare(Options& o) {
  CommandLine line("sample", "let a model trained on text write on");
  line.argument("RUN", o.run, "folder of a run over a text file", true);
  line.group("Options");
  line.text("--prompt", "TEXT", o.prompt, "what it goes on from; not empty, characters of the training text",
            "a line end")
      .whole("--tokens", o.tokens, {1, 1'000'000'000}, "characters (or bytes) to write")
      .real("--temperature", o.temperature, {0, 1e6},
            "0: always the likeliest; 1: as learned; above: more surprising")
      .whole("--top-k", o.top_k, {0, 1'000'000'000}, "choose among the likeliest k only; 0: among all");
  o.common.add_seed(line, "another seed, another text");
  o.common.add_threads(line);
  o.common.add_json(line);
  return line
      .example("headlab sample runs/shakespeare --prompt 'ROMEO:' --tokens 200", "200 characters of a scene")
      .example("headlab sample runs/shakespeare --temperature 0", "the likeliest text, the same every time");
}

std::vector<std::int64_t> encoded_prompt(const TextVocabulary& vocabulary, const Options& o) {
  if (!o.prompt) return {std::max<std::int64_t>(vocabulary.find("\n"), 0)};
  return as_usage([&] {
    check(!o.prompt->empty(), "--prompt", "is empty");
    return vocabulary.encode(*o.prompt, "--prompt");
  });
}

}  // namespace

int sample_command(const Session& session) {
  Options o;
  CommandLine line = declare(o);
  if (!ready(line, session, o.common)) return 0;
  const LoadedRun run = load_run(*o.run, session.catalogue);
  check(run.vocabulary.has_value(), *o.run,
        "is a run of the task '{}'; only runs over text files can be sampled from (look at this one with "
        "headlab "
        "inspect {})",
        run.config.task, for_shell(*o.run));
  const std::vector<std::int64_t> prompt = encoded_prompt(*run.vocabulary, o);

  std::string written;
  TextDecoder decoder(*run.vocabulary);
  const auto show = [&](const std::string& text) {
    written += text;
    if (o.common.json) return;
    print(text);
    flush_output();
  };
  if (o.prompt && !o.common.json) print(*o.prompt);
  generate(*run.model, prompt,
           {.sampling = {.temperature = o.temperature, .top_k = o.top_k},
            .tokens = o.tokens,
            .seed = o.common.seed_number()},
           [&](std::int64_t token) {
             show(decoder.push(token));
             return true;
           });
  show(decoder.finish());
  if (o.common.json) {
    print_json(
        {{"run", *o.run}, {"prompt", o.prompt.value_or("")}, {"text", written}, {"seed", o.common.seed}});
  } else if (!written.ends_with('\n')) {
    print("\n");
  }
  return 0;
}

}  // namespace headlab
