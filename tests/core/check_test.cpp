#include "framework/core/check.h"

#include "framework/core/shape.h"
#include "tests/support/errors.h"

namespace headlab {
namespace {

TEST(Check, PassesWhatIsRight) { EXPECT_NO_THROW(check(true, "op", "never {}", "said")); }

TEST(Check, SaysWhereAndWhatIsWrong) {
  EXPECT_EQ(error_of([] {
              check(false, "softmax", "axis {} is out of range for shape {}", 3, Shape{2, 5, 7});
            }),
            "softmax: axis 3 is out of range for shape [2, 5, 7]");
  EXPECT_EQ(error_of([] { fail("op", "{{}} {}", "x{}"); }), "op: {} x{}");
}

TEST(Check, ErrorsAreRuntimeErrors) { EXPECT_THROW(fail("op", "wrong"), std::runtime_error); }

}  // namespace
}  // namespace headlab
