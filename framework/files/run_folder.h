// The layout of a run's folder:
//   config.json                       everything that describes the run
//   metrics.jsonl                     one JSON object a line, as training goes
//   checkpoints/last.safetensors      to resume from
//   checkpoints/best.safetensors
//   snapshots/step-000123.safetensors weights only, on the way
//   heads.safetensors                 what each head did, step by step
//   report.html
#pragma once

#include <cstdint>
#include <filesystem>
#include <utility>
#include <vector>

#include <nlohmann/json_fwd.hpp>

namespace headlab {

/// Makes a folder and those above it where they are missing. Error: one of them is a file, or cannot be made.
void make_folder(const std::filesystem::path& path);

/// A value type that knows names and nothing else; making one with create() or open() checks the folder.
class RunFolder {
 public:
  /// Makes the folder, its parents and its sub-folders ready, tries out that they can be written, and removes
  /// stale temporaries. Errors, before any work is lost: the folder holds a run already (there is a
  /// config.json) and `resume` is false; `resume` is true and there is none; the path or one above it is a
  /// file; not writable. To keep other processes out, make the folder and hold its FolderLock before.
  static RunFolder create(const std::filesystem::path& path, bool resume = false);
  /// For reading. Error: no such folder, or it holds no run (says what was looked for).
  static RunFolder open(const std::filesystem::path& path);
  /// Whether the folder holds a run.
  static bool is_run(const std::filesystem::path& path);

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path config() const { return path_ / "config.json"; }
  std::filesystem::path metrics() const { return path_ / "metrics.jsonl"; }
  std::filesystem::path last_checkpoint() const { return path_ / "checkpoints" / "last.safetensors"; }
  std::filesystem::path best_checkpoint() const { return path_ / "checkpoints" / "best.safetensors"; }
  std::filesystem::path heads() const { return path_ / "heads.safetensors"; }
  std::filesystem::path report() const { return path_ / "report.html"; }
  /// Error: step < 0.
  std::filesystem::path snapshot(std::int64_t step) const;
  /// The snapshots that exist, by step; files of other names are passed over.
  std::vector<std::pair<std::int64_t, std::filesystem::path>> snapshots() const;

  /// From then on the folder holds a run.
  void write_config(const nlohmann::json& config) const;
  nlohmann::json read_config() const;

 private:
  explicit RunFolder(std::filesystem::path path) : path_(std::move(path)) {}
  std::filesystem::path path_;
};

}  // namespace headlab
