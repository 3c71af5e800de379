#include "framework/report/csv.h"

#include <cmath>

#include <gtest/gtest.h>

#include "framework/core/check.h"

namespace headlab {
namespace {

using Fields = std::vector<std::string>;

TEST(Csv, QuotesOnlyWhatNeedsIt) {
  EXPECT_EQ(csv_field("offsets"), "offsets");
  EXPECT_EQ(csv_field(" 36 352 "), " 36 352 ");
  EXPECT_EQ(csv_field("1,5"), "\"1,5\"");
  EXPECT_EQ(csv_field("say \"hi\""), "\"say \"\"hi\"\"\"");
  EXPECT_EQ(csv_field("two\nlines"), "\"two\nlines\"");
  EXPECT_EQ(csv_field("\r"), "\"\r\"");
  EXPECT_EQ(csv_field(""), "");
}

TEST(Csv, WritesNumbersThatReadBackTheSame) {
  for (const double value : {0.1, 1.0 / 3, 1e-300, 1.7976931348623157e308, -2.5})
    EXPECT_EQ(std::stod(csv_number(value)), value);
  EXPECT_EQ(csv_number(0.1), "0.1");
  EXPECT_EQ(csv_number(3.0), "3");
  EXPECT_EQ(csv_number(std::nan("")), "nan");
  EXPECT_EQ(csv_number(std::nullopt), "");
}

TEST(Csv, EndsRecordsWithCarriageReturnAndLineFeed) {
  EXPECT_EQ(csv_record(Fields{"a", "", "c"}), "a,,c\r\n");
  EXPECT_EQ(csv_record(Fields{""}), "\"\"\r\n");
}

TEST(Csv, BuildsATable) {
  Csv csv(Fields{"heads", "accuracy"});
  csv.row(Fields{"1", csv_number(0.209)}).row(Fields{"8", csv_number(std::nullopt)});
  EXPECT_EQ(csv.str(), "heads,accuracy\r\n1,0.209\r\n8,\r\n");
}

TEST(Csv, RefusesRaggedRecords) {
  Csv csv(Fields{"a", "b"});
  EXPECT_THROW(csv.row(Fields{"1"}), Error);
  EXPECT_EQ(csv.str(), "a,b\r\n");
  EXPECT_THROW(Csv(Fields{}), Error);
}

}  // namespace
}  // namespace headlab
