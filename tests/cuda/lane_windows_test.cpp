// Loops whose neighbours load and store around each other: a thread moves the vectors in which they do. Costs are the
// emulator's counts, results the interpreter's.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include "tests/cuda/launched.h"

namespace tilepilot::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Matcher;
using ::testing::Not;

// Of 512 iterations a block, whose results are stored by 4 warps in one vector each.
Launched loading(const std::string& value) {
  return launched(fmt::format(R"(program f(x: float32[2, 2064], y: float32[2, 512]) {{
  kernel bx in 2 threads 128 {{
    parallel i in 512 {{
      y[bx, i] = {}
    }}
  }}
}})",
                              value));
}

TEST(LaneWindows, OfLoads) {
  const std::pair<const char*, int> cases[] = {
      {"x[bx, 2 * i]", 2},
      {"x[bx, 2 * i + 1]", 2},
      {"x[bx, i * 2] + x[bx, i * 2 + 1]", 2},
      {"x[bx, i * 3 + 2]", 3},
      {"x[bx, i + 1]", 2},
      {"x[bx, i + 5] - x[bx, i + 7]", 2},
      {"x[bx, i + 15] + x[bx, i + 16] + x[bx, i + 17]", 3},
      {"x[bx, i // 4]", 4},  // one element for four: nothing to win
      {"x[bx, i * 4]", 4},
      {"x[bx, 511 - i]", 1},
      {"select(i >= 1, x[bx, i - 1], 0.0)", 2},
      {"x[bx, i - 3]", 2},
      {"x[bx, 2063 - i * 4]", 4},
  };
  for (const auto& [value, loads] : cases) {
    SCOPED_TRACE(value);
    const Launched run = loading(value);
    EXPECT_LE(run.counters.global_reads.instructions, 2 * 4 * loads);
    EXPECT_LE(run.counters.global_writes.instructions, 2 * 16);
  }
}

// What several load is loaded once.
TEST(LaneWindows, AreShared) {
  const Launched run = launched(R"(program f(x: float32[66, 264], y: float32[64, 256]) {
  kernel bx in 4 threads 128 {
    parallel i, j in 16, 256 {
      y[bx * 16 + i, j] = x[bx * 16 + i + 1, j + 3] + x[bx * 16 + i + 1, j + 4] + x[bx * 16 + i + 1, j + 5] +
        x[bx * 16 + i, j + 4] + x[bx * 16 + i + 2, j + 4]
    }
  }
})");
  EXPECT_EQ(run.counters.global_reads.instructions, 5 * 128);
  EXPECT_EQ(run.counters.global_writes.instructions, 128);
}

// Past the end of a row nothing is loaded, and rows of odd length have no vectors.
TEST(LaneWindows, EndWithTheirRows) {
  for (const int length : {508, 510, 511, 512, 513, 516}) {
    SCOPED_TRACE(length);
    const Launched run = launched(fmt::format(R"(program f(x: float32[4, {0}], y: float32[4, 512]) {{
  kernel bx in 4 threads 128 {{
    parallel i in 512 {{
      y[bx, i] = select(i + 1 < {0}, x[bx, i + 1], 1.0) + x[bx, i - 1]
    }}
  }}
}})",
                                              length));
    EXPECT_THAT(run.source, length % 4 == 0 ? Matcher<const std::string&>(HasSubstr("copy_vector<16>(&x_v"))
                                            : Not(HasSubstr("copy_vector<16>(&x_v")));
  }
}

TEST(LaneWindows, OfSharedTiles) {
  const Launched run = launched(R"(program f(x: float16[32, 256], y: float16[32, 128]) {
  kernel bx in 1 threads 128 {
    shared tile: float16[32, 256]
    copy x -> tile
    parallel i, j in 32, 128 {
      y[i, j] = tile[i, 2 * j] * tile[i, 2 * j + 1]
    }
  }
})");
  EXPECT_EQ(run.counters.shared_reads.instructions, 32);
  EXPECT_EQ(run.counters.shared_reads.bank_conflicts, 0);
}

// Pairs that are turned, and stored where they came from.
TEST(LaneWindows, OfStores) {
  const Launched run = launched(R"(program f(x: float16[16, 256], c: float16[16, 128], y: float16[16, 256]) {
  kernel bx in 4 threads 64 {
    parallel i, j in 4, 128 {
      let r: int32 = bx * 4 + i
      y[r, 2 * j] = x[r, 2 * j] * c[r, j] - x[r, 2 * j + 1]
      y[r, 2 * j + 1] = x[r, 2 * j + 1] * c[r, j] + x[r, 2 * j]
    }
  }
})");
  EXPECT_EQ(run.counters.global_reads.instructions, 16 * 256 / 8 / 32 + 16 * 128 / 4 / 32);
  EXPECT_EQ(run.counters.global_writes.instructions, 16 * 256 / 8 / 32);
}

// Elements between those that are stored keep what they have.
TEST(LaneWindows, AreNotStoredWhereElementsLackOne) {
  for (const char* body : {"y[bx, 2 * i] = x[bx, i]", "y[bx, 3 * i] = x[bx, i] y[bx, 3 * i + 1] = 2.0",
                           "y[bx, 2 * i] = x[bx, i] y[bx, 2 * i + 511] = 2.0", "y[bx, i + 1] = x[bx, i]"}) {
    SCOPED_TRACE(body);
    launched(fmt::format(R"(program f(x: float32[2, 256], y: float32[2, 1024]) {{
  kernel bx in 2 threads 32 {{
    parallel i in 128 {{
      {}
    }}
  }}
}})",
                         body));
  }
}

// What is stored before it is loaded again elsewhere.
TEST(LaneWindows, InPlace) {
  launched(R"(program f(x: float32[2, 512]) {
  kernel bx in 2 threads 64 {
    parallel i in 256 {
      let a: float32 = x[bx, 2 * i]
      x[bx, 2 * i] = x[bx, 2 * i + 1]
      x[bx, 2 * i + 1] = a
    }
  }
})");
}

// Others write the elements between: these are not even read.
TEST(LaneWindows, LeaveWhatOthersWrite) {
  launched(R"(program f(x: float32[512]) {
  kernel bx in 2 threads 64 {
    parallel i in 256 {
      x[2 * i + bx] = x[2 * i + bx] + 1.0
    }
  }
})");
  launched(R"(program f(x: float32[1024]) {
  kernel bx in 1 threads 64 {
    parallel i in 256 {
      x[i + 259] = x[i + 3] * 2.0
    }
  }
})");
}

// A tile has nothing before its first element, and what a condition leaves out is not read there.
TEST(LaneWindows, StayInTiles) {
  for (const char* value : {"select(i >= 1, tile[i - 1, j], 0.0)", "select(j >= 4, tile[i, j - 4], 0.0)",
                            "select(i < 31, tile[i + 1, j], 0.0)", "select(j < 124, tile[i, j + 4], 0.0)",
                            "select(i >= 1 and j < 64, tile[i - 1, 2 * j], 0.0)"}) {
    SCOPED_TRACE(value);
    launched(fmt::format(R"(program f(x: float32[32, 128], y: float32[32, 128]) {{
  kernel bx in 1 threads 128 {{
    shared tile: float32[32, 128]
    copy x -> tile
    parallel i, j in 32, 128 {{
      y[i, j] = {}
    }}
  }}
}})",
                         value));
  }
}

}  // namespace
}  // namespace tilepilot::testing
