// Updates of a fragment's element by many iterations: each keeps its part, a reduction combines them.
#include <gmock/gmock.h>

#include "tests/cuda/interpreted.h"

namespace tilepilot::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// A loop over 16 x 64 elements of a tile `x`, twice, which updates the fragments `one`, `rows`, `parts` and `all`.
std::string updating(const std::string& loop) {
  return "program sums(a: float32[32, 64], n: int32[4], o: float32[16], p: float32[4, 16], q: float32[1], r: "
         "float32[16, 64]) {\n"
         "  kernel bx in 1 threads 128 {\n    fragment x: float32[16, 64]\n    fragment one: float32[1]\n"
         "    fragment rows: float32[16]\n    fragment parts: float32[4, 16]\n    fragment all: float32[16, 64]\n"
         "    fill one = 1.0\n    fill rows = 2.0\n    fill parts = 3.0\n    fill all = 4.0\n"
         "    serial k in 2 {\n      copy a[k * 16 : +16, 0 : +64] -> x\n      parallel i, j in 16, 64 {\n" +
         loop + "      }\n    }\n    copy rows -> o\n    copy parts -> p\n    copy one -> q\n    copy all -> r\n  }\n}";
}

void expect_parts(const std::string& loop) {
  EXPECT_THAT(expect_interpreted(updating(loop)), Not(HasSubstr("atomic_update"))) << loop;
}

TEST(PartialResults, AreCombinedAfterTheLoop) {
  expect_parts("        one[0] = one[0] + x[i, j]\n        all[i, j] = x[i, j]\n");
  expect_parts("        rows[i] = max(rows[i], x[i, j])\n        all[i, j] = x[i, j] * 2.0\n");
  expect_parts("        rows[i] = min(rows[i], x[i, j])\n        one[0] = one[0] - x[i, j]\n");
  expect_parts("        parts[i // 4, j // 4] = parts[i // 4, j // 4] + x[i, j]\n        all[i, j] = x[i, j]\n");
  expect_parts("        parts[1, j // 4] = max(parts[1, j // 4], x[i, j])\n        all[i, j] = x[i, j]\n");
  expect_parts(
      "        let place: int32 = j // 4\n        rows[place] = rows[place] + x[i, j]\n        all[i, j] = x[i, j]\n");
}

TEST(PartialResults, MayBeMissing) {
  expect_parts(
      "        if x[i, j] > 0.5 {\n          one[0] = one[0] + x[i, j]\n        }\n        all[i, j] = x[i, j]\n");
  expect_parts(
      "        if j < n[0] {\n          rows[i] = max(rows[i], x[i, j])\n        } else {\n          all[i, j] = x[i, "
      "j]\n  "
      "      }\n");
}

// What else the loop does to the fragment, and elements that only running tells, are no parts.
TEST(PartialResults, AreThoseOfOneUpdateToAKnownPlace) {
  const std::string twice =
      "        one[0] = one[0] + x[i, j]\n        one[0] = one[0] + 1.0\n        all[i, j] = x[i, j]\n";
  EXPECT_THAT(expect_interpreted(updating(twice)), HasSubstr("atomic_update"));
  const std::string loaded =
      "        rows[n[j % 4] % 16] = rows[n[j % 4] % 16] + x[i, j]\n        all[i, j] = x[i, j]\n";
  EXPECT_THAT(expect_interpreted(updating(loaded)), HasSubstr("atomic_update"));
  const std::string inside =
      "        serial m in 3 {\n          rows[i] = rows[i] + x[i, j]\n        }\n        all[i, j] = x[i, j]\n";
  EXPECT_THAT(expect_interpreted(updating(inside)), HasSubstr("atomic_update"));
}

}  // namespace
}  // namespace tilepilot::testing
