#include "framework/report/csv.h"

#include <fmt/core.h>

#include "framework/core/check.h"

namespace headlab {

std::string csv_field(std::string_view text) {
  if (text.find_first_of(",\"\r\n") == std::string_view::npos) return std::string(text);
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"') quoted += '"';
    quoted += c;
  }
  return quoted + '"';
}

std::string csv_number(std::optional<double> value) {
  return value ? fmt::format("{}", *value) : std::string();
}

std::string csv_record(std::span<const std::string> fields) {
  if (fields.size() == 1 && fields[0].empty()) return "\"\"\r\n";
  std::string record;
  for (std::size_t i = 0; i < fields.size(); ++i) {
    if (i > 0) record += ',';
    record += csv_field(fields[i]);
  }
  return record + "\r\n";
}

Csv::Csv(std::span<const std::string> header) : fields_(header.size()) {
  check(!header.empty(), "csv", "the header is empty");
  text_ = csv_record(header);
}

Csv& Csv::row(std::span<const std::string> fields) {
  check(fields.size() == fields_, "csv", "a record of {} fields under a header of {}", fields.size(),
        fields_);
  text_ += csv_record(fields);
  return *this;
}

}  // namespace headlab
