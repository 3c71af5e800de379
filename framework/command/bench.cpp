#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "framework/command/bench_case.h"
#include "framework/command/bench_timing.h"
#include "framework/command/console.h"
#include "framework/command/memory.h"
#include "framework/command/profile_option.h"
#include "framework/command/subcommands.h"
#include "framework/core/parallel.h"
#include "framework/core/pool.h"
#include "framework/core/suggest.h"
#include "framework/report/format.h"

namespace headlab {

namespace {

struct Options {
  CommonOptions common;
  std::optional<std::string> shapes, only, kind;
  bool telemetry = false;
  double seconds = 1;
  ProfileOption profile;
};

CommandLine declare(Options& o) {
  CommandLine line("bench", "measure speed on fixed shapes, beside the machine's limit");
  line.group("What is measured");
  line.text("--shapes", "FILE", o.shapes, "cases of one's own, JSON as framework/command/bench_shapes.json",
            "that file")
      .text("--kind", "KIND", o.kind,
            "mha: attention layers, forward and backward; train: whole training steps; ops: the operations "
            "that these are made of",
            "mha and train")
      .text("--only", "A,B,…", o.only, "the cases of these names; of ops also those that a shape makes",
            "all")
      .flag("--telemetry", o.telemetry, "gather every head's statistics on the way");
  line.group("How");
  line.real("--min-time", o.seconds, {0, 3600, false},
            "seconds that each case is repeated for, and at least five times");
  o.common.add_threads(line);
  o.profile.add(line, "headlab-profile.json");
  line.flag("--json", o.common.json, "print one JSON object a case and nothing else on standard output");
  return line.example("headlab bench", "attention layers and training steps, in a minute or two")
      .example("headlab bench --kind train --only nanogpt-cpu --threads 1", "one case on one thread")
      .example("headlab bench --kind ops --only linear", "matrix products of the sizes that training makes");
}

std::vector<BenchKind> kinds_of(const Options& o) {
  if (!o.kind) return {BenchKind::mha, BenchKind::train};
  std::vector<std::string> names;
  for (const BenchKind kind : {BenchKind::mha, BenchKind::train, BenchKind::ops}) {
    names.emplace_back(name_of(kind));
    if (*o.kind == names.back()) return {kind};
  }
  throw UsageError(fmt::format("--kind: '{}' is none{} (allowed: {})", printable(*o.kind),
                               did_you_mean(*o.kind, names), fmt::join(names, ", ")));
}

std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> parts;
  std::size_t from = 0;
  for (std::size_t comma = 0; comma != std::string::npos; from = comma + 1) {
    comma = text.find(',', from);
    parts.push_back(text.substr(from, comma - from));
  }
  return parts;
}

/// The cases that --only names, in their own order.
std::vector<BenchCase> chosen(std::vector<BenchCase> cases, const std::string& only) {
  std::vector<std::string> known;
  for (const BenchCase& c : cases) {
    for (const std::string& name : c.names) {
      if (std::find(known.begin(), known.end(), name) == known.end()) known.push_back(name);
    }
  }
  const std::vector<std::string> wanted = split(only);
  for (const std::string& name : wanted) {
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    // Many operations have long names: only the nearest few are listed.
    const std::vector<std::string> listed = known.size() > 20 ? nearest_names(name, known, 12) : known;
    throw UsageError(fmt::format("--only: no case '{}'{} ({}: {})", printable(name),
                                 did_you_mean(name, known), known.size() > 20 ? "the nearest" : "allowed",
                                 fmt::join(listed, ", ")));
  }
  const auto is_wanted = [&](const BenchCase& c) {
    return std::any_of(c.names.begin(), c.names.end(), [&](const std::string& name) {
      return std::find(wanted.begin(), wanted.end(), name) != wanted.end();
    });
  };
  cases.erase(std::remove_if(cases.begin(), cases.end(), [&](const BenchCase& c) { return !is_wanted(c); }),
              cases.end());
  return cases;
}

std::vector<BenchCase> plan(const Options& o, const Catalogue& catalogue) {
  const BenchShapes shapes =
      as_usage([&] { return o.shapes ? read_shapes(*o.shapes) : parse_shapes(shipped_shapes(), "bench"); });
  std::vector<BenchCase> cases;
  for (const BenchKind kind : kinds_of(o)) {
    if (kind == BenchKind::mha) {
      for (const AttentionShape& shape : shapes.attention)
        cases.push_back(attention_case(shape, o.telemetry));
    } else if (kind == BenchKind::train) {
      for (const TrainingShape& shape : shapes.training)
        cases.push_back(training_case(shape, catalogue, o.telemetry));
    } else {
      cases = operation_cases(shapes, o.telemetry);
    }
  }
  if (cases.empty()) throw UsageError(fmt::format("--kind: {} has no such case", o.shapes.value_or("bench")));
  return o.only ? chosen(std::move(cases), *o.only) : cases;
}

struct Measured {
  Timing timing;
  std::optional<double> memory;  // the most bytes at once while steps ran
};

Measured run(const BenchCase& c, double seconds) {
  pool::trim();  // so that the first call is a first one
  const std::function<void()> step = c.prepare();
  reset_peak_memory();
  const std::string title = fmt::format("{} {}", name_of(c.kind), c.name);
  const Timing timing = measure(
      [&] {
        const profile::Scope scope(title);
        step();
      },
      seconds);
  return {timing, peak_memory()};
}

/// Rounded: nobody needs seventeen digits of a noisy figure.
double rounded(double value, int decimals) {
  const double scale = std::pow(10, decimals);
  return std::round(value * scale) / scale;
}

std::string json_line(const Options& o, const BenchCase& c, const Measured& measured, double peak) {
  const Timing& t = measured.timing;
  nlohmann::ordered_json json{
      {"peer", fmt::format("headlab-{}{}", HEADLAB_VERSION, o.telemetry ? "-telemetry" : "")},
      {"threads", threads()},
      {"kind", name_of(c.kind)},
      {"name", c.name},
      {"ms", rounded(t.median, 4)},
      {"n", t.calls},
      {"gflops", rounded(c.flops / t.median / 1e6, 2)},
      {"peak_share", rounded(c.flops / t.median / 1e6 / peak, 4)},
      {"ms_low", rounded(t.low, 4)},
      {"ms_high", rounded(t.high, 4)},
      {"ms_min", rounded(t.fastest, 4)},
      {"ms_max", rounded(t.slowest, 4)},
      {"first_ms", rounded(t.first, 4)},
      {"peak_gflops", rounded(peak, 1)}};
  if (measured.memory) json["peak_memory_mb"] = rounded(*measured.memory * 1e-6, 1);
  if (c.bytes > 0) json["gbytes_per_s"] = rounded(c.bytes / t.median / 1e6, 2);
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

/// Three significant digits: "0.0123", "1.23", "123", "1230".
std::string milliseconds(double ms) {
  return fixed(ms, ms < 0.1 ? 4 : ms < 1 ? 3 : ms < 10 ? 2 : ms < 100 ? 1 : 0);
}

class Lines {
 public:
  explicit Lines(const std::vector<BenchCase>& cases) {
    for (const BenchCase& c : cases) width_ = std::max(width_, display_width(title(c)));
  }
  std::string head() const {
    return line("case", "ms", "quartiles", "n", "first ms", "GFLOP/s", "of peak", "GB/s", "memory");
  }
  std::string row(const BenchCase& c, const Measured& measured, double peak) const {
    const Timing& t = measured.timing;
    const double rate = c.flops / t.median / 1e6;
    return line(
        title(c), milliseconds(t.median), fmt::format("{} – {}", milliseconds(t.low), milliseconds(t.high)),
        grouped(t.calls), milliseconds(t.first), c.flops > 0 ? fixed(rate, 1) : "–",
        c.flops > 0 ? percent(rate / peak) : "–", c.bytes > 0 ? fixed(c.bytes / t.median / 1e6, 1) : "–",
        measured.memory ? with_unit(*measured.memory, "B") : "–");
  }

 private:
  static std::string title(const BenchCase& c) {
    return fmt::format("{} {}", name_of(c.kind), printable(c.name));
  }
  std::string line(const std::string& name, const std::string& ms, const std::string& spread,
                   const std::string& n, const std::string& first, const std::string& rate,
                   const std::string& share, const std::string& bytes, const std::string& memory) const {
    return padded_right(name, width_) + padded_left(ms, 10) + padded_left(spread, 19) + padded_left(n, 9) +
           padded_left(first, 10) + padded_left(rate, 9) + padded_left(share, 9) + padded_left(bytes, 7) +
           padded_left(memory, 10) + "\n";
  }
  std::int64_t width_ = 12;
};

}  // namespace

int bench_command(const Session& session) {
  Options o;
  CommandLine line = declare(o);
  if (!ready(line, session, o.common)) return 0;
  const std::vector<BenchCase> cases = plan(o, session.catalogue);
  double peak = measured_peak(0.5);
  const Lines lines(cases);
  if (!o.common.json) {
    print_for_people(
        fmt::format("The limit here: {:.1f} GFLOP/s (f32 multiply-adds in registers, {} thread{})\n", peak,
                    threads(), threads() == 1 ? "" : "s"));
    print_for_people(lines.head());
  }
  o.profile.start();
  for (const BenchCase& c : cases) {
    // On a shared machine the first measurement may have met a busy moment: the highest so far counts.
    peak = std::max(peak, measured_peak(0.05));
    const Measured measured = run(c, o.seconds);
    if (o.common.json) {
      print(json_line(o, c, measured, peak));
    } else {
      print_for_people(lines.row(c, measured, peak));
    }
    flush_output();  // a case may take a minute
  }
  const std::string profile = o.profile.finish("headlab-profile.json");
  if (!o.common.json) print_for_people(profile);
  return 0;
}

}  // namespace headlab
