#include "framework/sweep/ledger.h"

#include <algorithm>
#include <system_error>
#include <utility>

#include <nlohmann/json.hpp>

#include "framework/core/check.h"
#include "framework/core/random.h"
#include "framework/files/json_file.h"
#include "framework/files/run_folder.h"

namespace headlab {
namespace {

constexpr const char* ledger_file = "ledger.json";
constexpr const char* record_file = "result.json";

std::uint64_t of_array(const Array& array, std::uint64_t before) {
  if (!array) return hash(before, 0);
  const auto bytes = static_cast<std::size_t>(array.bytes());
  return hash(before, hash(std::string_view(static_cast<const char*>(array.raw()), bytes)));
}

std::uint64_t of_batch(const Batch& batch, std::uint64_t before) {
  std::uint64_t sum = before;
  for (const Array& input : batch.inputs) sum = of_array(input, sum);
  sum = of_array(batch.source_valid, sum);
  sum = of_array(batch.targets, sum);
  for (const Array& keys : batch.head_targets) sum = of_array(keys, sum);
  if (batch.valid) sum = of_array(batch.valid, sum);
  for (const Array& probe : batch.probes) sum = of_array(probe, sum);
  return sum;
}

bool is_file(const std::filesystem::path& path) {
  std::error_code error;
  return std::filesystem::is_regular_file(path, error);
}

}  // namespace

std::uint64_t data_fingerprint(const Task& task, const RunConfig& config) {
  std::uint64_t sum = of_batch(task.batch(config.seed, 0, config.recipe.batch), 0);
  constexpr std::int64_t piece = 64;
  const std::int64_t sequences = task.held_out_size();
  for (std::int64_t first = 0; first < sequences; first += piece) {
    sum = of_batch(task.held_out(config.seed, first, std::min(piece, sequences - first)), sum);
  }
  return sum;
}

PlannedRun plan_run(RunConfig config, std::uint64_t data, std::int64_t version) {
  const nlohmann::json identity = {{"config", to_json(config)}, {"data", data}, {"numbers_version", version}};
  PlannedRun run;
  run.key = fmt::format("{:016x}", hash(identity.dump()));  // keys are sorted, so the text is canonical
  run.name = fmt::format("h{}-s{}-{}", config.needs.heads, config.seed, run.key.substr(0, 8));
  run.config = std::move(config);
  return run;
}

std::optional<RunRecord> find_record(const std::filesystem::path& run, std::string_view key) {
  const std::filesystem::path path = run / record_file;
  if (!is_file(path)) return std::nullopt;
  const nlohmann::json json = read_json(path);
  const auto stored = json.is_object() ? json.find("key") : json.end();
  check(stored != json.end() && stored->is_string(), path.string(), "is no run record: 'key' is missing");
  if (*stored != key) return std::nullopt;
  try {
    return run_record_from_json(json);
  } catch (const Error& error) {
    fail(path.string(), "{}", error.what());
  }
}

void store_record(const std::filesystem::path& run, std::string_view key, const RunRecord& record) {
  nlohmann::json json = to_json(record);
  json["key"] = key;
  write_json(run / record_file, json);
}

void write_ledger(const std::filesystem::path& folder, const Ledger& ledger) {
  nlohmann::json runs = nlohmann::json::array();
  for (const Ledger::Entry& run : ledger.runs) {
    runs.push_back({{"heads", run.heads}, {"seed", run.seed}, {"name", run.name}, {"key", run.key}});
    if (!run.setting.empty()) runs.back()["setting"] = run.setting;
  }
  write_json(folder / ledger_file,
             {{"task", ledger.task}, {"numbers_version", numbers_version}, {"runs", std::move(runs)}});
}

void create_sweep(const std::filesystem::path& folder, std::string task, std::span<const PlannedRun> runs) {
  check(!folder.empty(), "sweep folder", "the path is empty");
  check(!RunFolder::is_run(folder), folder.string(),
        "holds a run (config.json is there); choose another folder for a sweep");
  make_folder(folder);
  Ledger ledger{std::move(task), {}};
  for (const PlannedRun& run : runs) {
    ledger.runs.push_back({run.config.needs.heads, run.config.seed, run.name, run.key, run.setting});
  }
  write_ledger(folder, ledger);
}

Ledger read_ledger(const std::filesystem::path& folder) {
  check(is_sweep(folder), folder.string(), "is no sweep: there is no {} in it", ledger_file);
  const std::filesystem::path path = folder / ledger_file;
  const nlohmann::json json = read_json(path);
  try {
    Ledger ledger;
    ledger.task = json.at("task").get<std::string>();
    for (const nlohmann::json& run : json.at("runs")) {
      Ledger::Entry entry;
      run.at("heads").get_to(entry.heads);
      run.at("seed").get_to(entry.seed);
      run.at("name").get_to(entry.name);
      run.at("key").get_to(entry.key);
      entry.setting = run.value("setting", "");
      const std::filesystem::path name = entry.name;
      check(!name.empty() && name == name.filename() && entry.name != "." && entry.name != "..",
            path.string(), "'{}' is no name of a folder", entry.name);
      ledger.runs.push_back(std::move(entry));
    }
    return ledger;
  } catch (const nlohmann::json::exception& error) {
    fail(path.string(), "is no ledger: {}", error.what());
  }
}

bool is_sweep(const std::filesystem::path& folder) { return is_file(folder / ledger_file); }

}  // namespace headlab
