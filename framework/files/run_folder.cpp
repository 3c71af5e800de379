#include "framework/files/run_folder.h"

#include <algorithm>
#include <charconv>
#include <string>
#include <string_view>
#include <system_error>

#include <nlohmann/json.hpp>

#include "framework/core/check.h"
#include "framework/files/atomic_file.h"
#include "framework/files/json_file.h"

namespace headlab {
namespace {

constexpr std::string_view snapshot_prefix = "step-";
constexpr std::string_view snapshot_suffix = ".safetensors";

// Permission bits say little (root, read-only and virtual file systems), so try.
void try_to_write(const std::filesystem::path& folder) {
  AtomicFile probe(folder / "probe");
  probe.write("probe");
}

// The step of "step-000123.safetensors", or -1.
std::int64_t step_of(std::string_view name) {
  if (name.size() <= snapshot_prefix.size() + snapshot_suffix.size()) return -1;
  if (name.substr(0, snapshot_prefix.size()) != snapshot_prefix) return -1;
  if (name.substr(name.size() - snapshot_suffix.size()) != snapshot_suffix) return -1;
  name.remove_prefix(snapshot_prefix.size());
  name.remove_suffix(snapshot_suffix.size());
  std::int64_t step = -1;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), step);
  return error == std::errc() && end == name.data() + name.size() ? step : -1;
}

}  // namespace

void make_folder(const std::filesystem::path& path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  // On an existing file the library reports success or "Not a directory", by version.
  check(!error, path.string(), "cannot create the folder: {}", error.message());
  const bool is_folder = std::filesystem::is_directory(path, error);
  check(is_folder, path.string(), "cannot create the folder: a file is in its place");
}

RunFolder RunFolder::create(const std::filesystem::path& path, bool resume) {
  check(!path.empty(), "run folder", "the path is empty");
  if (resume) {
    open(path);
  } else {
    check(!is_run(path), path.string(),
          "already holds a run (config.json is there); resume it or choose another folder");
  }
  RunFolder run(path);
  for (const std::filesystem::path& folder : {path, path / "checkpoints", path / "snapshots"}) {
    make_folder(folder);
    try_to_write(folder);
    remove_stale_temporaries(folder);
  }
  return run;
}

RunFolder RunFolder::open(const std::filesystem::path& path) {
  std::error_code error;
  const auto status = std::filesystem::status(path, error);
  check(std::filesystem::exists(status), path.string(), "no such run folder");
  check(std::filesystem::is_directory(status), path.string(), "is a file, not a run folder");
  check(is_run(path), path.string(), "is no run folder: there is no config.json in it");
  return RunFolder(path);
}

bool RunFolder::is_run(const std::filesystem::path& path) {
  std::error_code error;
  return std::filesystem::is_regular_file(path / "config.json", error);
}

std::filesystem::path RunFolder::snapshot(std::int64_t step) const {
  check(step >= 0, path_.string(), "a snapshot of step {}", step);
  return path_ / "snapshots" / fmt::format("{}{:06}{}", snapshot_prefix, step, snapshot_suffix);
}

std::vector<std::pair<std::int64_t, std::filesystem::path>> RunFolder::snapshots() const {
  std::vector<std::pair<std::int64_t, std::filesystem::path>> found;
  std::error_code error;
  const std::filesystem::path folder = path_ / "snapshots";
  std::filesystem::directory_iterator entry(folder, error);
  if (error == std::errc::no_such_file_or_directory) return found;
  for (; !error && entry != std::filesystem::directory_iterator(); entry.increment(error)) {
    const std::int64_t step = step_of(entry->path().filename().string());
    if (step >= 0) found.emplace_back(step, entry->path());
  }
  check(!error, folder.string(), "cannot list: {}", error.message());
  std::sort(found.begin(), found.end());
  return found;
}

void RunFolder::write_config(const nlohmann::json& config) const { write_json(this->config(), config); }

nlohmann::json RunFolder::read_config() const { return read_json(config()); }

}  // namespace headlab
