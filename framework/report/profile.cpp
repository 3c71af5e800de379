#include "framework/report/profile.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <unordered_map>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "framework/files/atomic_file.h"
#include "framework/report/format.h"
#include "framework/report/table.h"

namespace headlab {

namespace {

using profile::Line;
using profile::Pass;

struct Sum {
  std::int64_t calls = 0;
  double seconds = 0, forward = 0, backward = 0, flops = 0, bytes = 0;
  void add(const Line& line) {
    calls += line.calls;
    seconds += line.seconds;
    (line.pass == Pass::backward ? backward : forward) += line.seconds;
    flops += line.flops;
    bytes += line.bytes;
  }
};

/// By name, the most time first.
std::vector<std::pair<std::string, Sum>> sorted(const std::map<std::string, Sum>& sums) {
  std::vector<std::pair<std::string, Sum>> list(sums.begin(), sums.end());
  std::stable_sort(list.begin(), list.end(),
                   [](const auto& a, const auto& b) { return a.second.seconds > b.second.seconds; });
  return list;
}

std::string title(std::string_view op, Pass pass) {
  return fmt::format("{}{}", op, pass == Pass::backward ? " backward" : "");
}

/// Scopes around operations have no name or pass of their own: what is left of them is what lies between.
bool is_operation(const Line& line) {
  return line.pass != Pass::none ? !line.op.empty() : line.flops + line.bytes > 0;
}

/// "blocks.11.mlp.up" → "blocks.*.mlp.up"
std::string without_numbers(const std::string& path) {
  std::string result;
  for (std::size_t from = 0; from <= path.size();) {
    const std::size_t end = std::min(path.find('.', from), path.size());
    const std::string part = path.substr(from, end - from);
    const bool number = !part.empty() && std::all_of(part.begin(), part.end(),
                                                     [](unsigned char c) { return std::isdigit(c) != 0; });
    result += (result.empty() ? "" : ".") + (number ? "*" : part);
    from = end + 1;
  }
  return result;
}

std::string rate(double work, double seconds) {
  return work > 0 && seconds > 0 ? fixed(work / seconds * 1e-9, 1) : "–";
}
std::string amount(double bytes) { return bytes > 0 ? with_unit(bytes, "B") : "–"; }

constexpr const char* between = "(between operations)";

}  // namespace

std::string profile_tables(const profile::Profile& profile, const Terminal& terminal) {
  std::map<std::string, Sum> by_op, by_layer;
  Sum total;
  for (const Line& line : profile.lines) {
    by_op[is_operation(line) ? title(line.op, line.pass) : between].add(line);
    // The optimiser belongs to no layer, and has a line above.
    if (!line.layer.empty()) by_layer[without_numbers(line.layer)].add(line);
    total.add(line);
  }
  const auto share = [&](double seconds) { return percent(total.seconds > 0 ? seconds / total.seconds : 0); };

  Table ops({{"operation"},
             {"calls", Align::right},
             {"time", Align::right},
             {"share", Align::right},
             {"GFLOP/s", Align::right},
             {"GB/s", Align::right},
             {"moved", Align::right}});
  ops.title("Where the time went, by operation");
  for (const auto& [name, sum] : sorted(by_op)) {
    ops.row({name, name == between ? "–" : grouped(sum.calls), duration(sum.seconds), share(sum.seconds),
             rate(sum.flops, sum.seconds), rate(sum.bytes, sum.seconds), amount(sum.bytes)});
  }
  ops.rule();
  ops.row({"all", "", duration(total.seconds), "", rate(total.flops, total.seconds),
           rate(total.bytes, total.seconds), amount(total.bytes)});
  std::string text = ops.str(terminal);
  if (by_layer.empty()) return text;

  Table layers({{"layer"},
                {"forward", Align::right},
                {"backward", Align::right},
                {"share", Align::right},
                {"GFLOP/s", Align::right},
                {"GB/s", Align::right},
                {"moved", Align::right}});
  layers.title("By layer, without the layers inside it");
  for (const auto& [name, sum] : sorted(by_layer)) {
    layers.row({name, duration(sum.forward), duration(sum.backward), share(sum.seconds),
                rate(sum.flops, sum.seconds), rate(sum.bytes, sum.seconds), amount(sum.bytes)});
  }
  return text + "\n" + layers.str(terminal);
}

void write_trace(const std::filesystem::path& file, const profile::Profile& profile) {
  std::unordered_map<std::int32_t, std::string> names;
  const auto name_of = [&](std::int32_t id) -> const std::string& {
    const auto found = names.emplace(id, "");
    if (found.second) found.first->second = profile::name_of(id);
    return found.first->second;
  };
  const auto quoted = [](const std::string& text) {
    return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  };
  AtomicFile out(file);
  out.write("{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n");
  std::string text;
  bool first = true;
  for (const profile::Event& event : profile.events) {
    const std::string& layer = name_of(event.layer);
    const std::string& op = name_of(event.op);
    const auto span = static_cast<double>(event.end - event.begin);
    const char* kind = event.pass == Pass::backward  ? "backward"
                       : event.pass == Pass::forward ? "forward"
                                                     : "phase";
    text += fmt::format(
        "{}{{\"name\":{},\"cat\":\"{}\",\"ph\":\"X\",\"pid\":1,\"tid\":1,\"ts\":{:.3f},\"dur\":{:.3f}",
        first ? "" : ",\n", quoted(op.empty() ? layer : title(op, event.pass)), kind,
        static_cast<double>(event.begin) * 1e-3, span * 1e-3);
    text += fmt::format(",\"args\":{{\"layer\":{},\"flops\":{:.0f},\"bytes\":{:.0f}", quoted(layer),
                        event.flops, event.bytes);
    if (span > 0)
      text += fmt::format(",\"GFLOP/s\":{:.2f},\"GB/s\":{:.2f}", event.flops / span, event.bytes / span);
    text += "}}";
    first = false;
    if (text.size() > (1U << 20)) {
      out.write(text);
      text.clear();
    }
  }
  out.write(text + "\n]}\n");
  out.commit();
}

}  // namespace headlab
