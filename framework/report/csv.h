// Comma-separated values as RFC 4180 has them: CR LF after every record; fields with a comma, a quote or a
// line end in quotes, quotes doubled. Pure functions.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace headlab {

/// One field, quoted if it must be.
std::string csv_field(std::string_view text);
/// The shortest text that reads back as the same number ("0.1", "1e-05", "nan", "inf"); nothing if absent.
std::string csv_number(std::optional<double> value);
/// One record with its line end. A record of one empty field is written as "" so that it is no blank line.
std::string csv_record(std::span<const std::string> fields);

/// A header and records. Error: a record whose number of fields is not the header's.
class Csv {
 public:
  explicit Csv(std::span<const std::string> header);
  Csv& row(std::span<const std::string> fields);
  const std::string& str() const { return text_; }

 private:
  std::size_t fields_;
  std::string text_;
};

}  // namespace headlab
