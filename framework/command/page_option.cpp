#include "framework/command/page_option.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "framework/core/check.h"
#include "framework/files/json_file.h"
#include "framework/report/page.h"

namespace headlab {

namespace fs = std::filesystem;

namespace {
constexpr std::string_view training_file = "train.json";
}

MadeBy made_by(const CommandLine& line, const Session& session) {
  return {typed_again(line, session), HEADLAB_VERSION};
}

void PageOption::add(CommandLine& line) {
  line.flag("--svg", svg_, "the pictures of report.html as SVG files too");
}

void PageOption::keep(const CommandLine& line, const Session& session, const fs::path& folder,
                      std::string_view file, const nlohmann::json& result) {
  keep(line, folder, file, result, made_by(line, session));
}

void PageOption::keep(const CommandLine& line, const fs::path& folder, std::string_view file,
                      const nlohmann::json& result, const MadeBy& made_by) {
  std::error_code error_code;
  if (fs::is_regular_file(folder, error_code)) failed_ = true;  // weights without a folder: no page
  if (failed_) return;
  try {
    save_result(folder, file, result, made_by);
  } catch (const Error& error) {
    failed_ = true;
    warn(line, fmt::format("no report: {}", error.what()));
  }
}

void PageOption::keep_training(const CommandLine& line, const Session& session, const fs::path& folder,
                               const nlohmann::json& result, bool resumed) {
  MadeBy by = made_by(line, session);
  if (resumed && fs::exists(folder / training_file)) {
    try {
      const nlohmann::json before = read_json(folder / training_file).at("made_by");
      by = {before.at("command"), before.at("version")};
    } catch (const std::exception&) {  // not a file of ours: this command is what is known
    }
  }
  keep(line, folder, training_file, result, by);
}

void PageOption::keep_attention(const CommandLine& line, const Session& session, const fs::path& folder,
                                const LoadedRun& run) {
  keep_attention(line, session, folder, *run.model, *run.task, run.config.seed);
}

void PageOption::keep_attention(const CommandLine& line, const Session& session, const fs::path& folder,
                                Model& model, const Task& task, std::uint64_t seed) {
  keep(line, session, folder, "attention.json", attention_maps_json(attention_maps(model, task, seed)));
}

std::string PageOption::write(const CommandLine& line, const fs::path& folder) const {
  if (failed_) return "";
  try {
    const std::vector<fs::path> files = write_page(folder, {.pictures = svg_});
    std::string text = fmt::format("The page: {}", files.front().string());
    if (files.size() > 1) text += fmt::format(", with {} SVG files beside it", files.size() - 1);
    return text + "\n";
  } catch (const Error& error) {
    warn(line, fmt::format("no report: {}", error.what()));
    return "";
  }
}

}  // namespace headlab
