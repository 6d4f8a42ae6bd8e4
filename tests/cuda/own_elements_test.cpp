// Elements that a thread, or an iteration, has for itself: no memory, barrier or single access where there is no need.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include "compiler/ir/visit.h"
#include "compiler/targets/gpu/facts/elements_apart.h"
#include "compiler/targets/gpu/facts/let_values.h"
#include "tests/cpu/kernel_fixture.h"
#include "tests/cuda/interpreted.h"

namespace tilepilot::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

// 64 x 64 elements, eight of them a thread's at once, and what it has of a maximum.
std::string maxima(const std::string& layout, const std::string& place) {
  return fmt::format(
      "program maxima(a: float16[64, 64], o: float32[1]) {{\n  kernel bx in 1 threads 128 {{\n"
      "    fragment x: float16[64, 64]\n    fragment most: float16[1, 128]\n    fragment all: float32[1]\n"
      "    layout i, j in x by (i * 64 + j) // 8 % 128 at i * 64 // 1024 * 8 + j % 8\n{}"
      "    copy a -> x\n    fill most = 0.0\n    parallel i, j in 64, 64 {{\n      let at: int32 = {}\n"
      "      most[0, at] = max(most[0, at], abs(x[i, j]))\n    }}\n"
      "    reduce max most -> all axis 1\n    o[0] = all[0]\n  }}\n}}",
      layout, place);
}

TEST(JointUpdates, StayInTheRegistersOfTheThreadThatDoesThemAll) {
  const std::string own = "(i % 16 * 64 + j) // 8";
  EXPECT_THAT(expect_interpreted(maxima("    layout i, j in most by j at i\n", own)), Not(HasSubstr("atomic_update")));
  // Others hold them, or several threads do.
  for (const char* layout : {"    layout i, j in most by 127 - j at i\n",
                             "    layout i, j, who in most replicas 2 by j // 2 + who * 64 at j % 2\n"})
    EXPECT_THAT(expect_interpreted(maxima(layout, own)), HasSubstr("atomic_update")) << layout;
  EXPECT_THAT(expect_interpreted(maxima("    layout i, j in most by j at i\n", "(i % 16 * 64 + j) % 128")),
              HasSubstr("atomic_update"));
}

// Eight elements of a fragment for each iteration, one after the other.
std::string unpacked(const std::string& kind, const std::string& place) {
  return fmt::format(
      "program unpacked(a: int32[8, 32], o: float32[8, 256]) {{\n  kernel bx in 1 threads 32 {{\n"
      "    fragment x: float32[8, 256]\n"
      "    layout i, j in x by j // 8 at i * 8 + j % 8\n"
      "    parallel i, j in 8, 32 {{\n      {} k in 8 {{\n        let at: int32 = {}\n"
      "        x[i, at] = float32(a[i, j] >> k)\n      }}\n    }}\n    copy x -> o\n  }}\n}}",
      kind, place);
}

TEST(InnerLoops, FindPartsOfFragmentsInRegisters) {
  for (const char* kind : {"serial", "vectorized", "unrolled"})
    EXPECT_THAT(expect_interpreted(unpacked(kind, "j * 8 + k")), Not(HasSubstr("shared_tile"))) << kind;
  EXPECT_THAT(expect_interpreted(unpacked("serial", "(31 - j) * 8 + k")), HasSubstr("shared_tile"));
}

// A thread turns 4 x 4 elements around; which row it stores first is its own.
std::string turned(const std::string& type, const std::string& row, const std::string& also) {
  return fmt::format(
      "program turned(a: {0}[64, 32], o: {0}[32, 64]) {{\n  kernel bx in 1 threads t in 128 {{\n"
      "    shared tile: {0}[32, 68]\n    local held: {0}[4, 4]\n    unrolled j in 4 {{\n      vectorized k in 4 {{\n"
      "        held[k, j] = a[t // 8 * 4 + j, t % 8 * 4 + k]\n      }}\n    }}\n{2}"
      "    unrolled j in 4 {{\n      let row: int32 = {1}\n      vectorized k in 4 {{\n"
      "        tile[t % 8 * 4 + row, t // 8 * 4 + k] = held[row, k]\n      }}\n    }}\n    sync\n"
      "    parallel i, j in 32, 64 {{\n      o[i, j] = tile[i, j]\n    }}\n  }}\n}}",
      type, row, also);
}

TEST(PickedVectors, KeepArraysInRegisters) {
  for (const char* type : {"float8_e4m3fn", "float16", "float32"})
    EXPECT_THAT(expect_interpreted(turned(type, "(j + t) % 4", "")), HasSubstr("pick_vector<")) << type;
  // Known places, or some that are known to nobody: as they were.
  EXPECT_THAT(expect_interpreted(turned("float16", "(j + 1) % 4", "")), Not(HasSubstr("pick_vector<")));
  EXPECT_THAT(
      expect_interpreted(turned("float16", "(j + t) % 4", "    held[t % 4, 1] = held[t % 4, 1] + held[0, 1]\n")),
      Not(HasSubstr("pick_vector<")));
}

// Pairs of elements, each computed from both, in each of three parts of a row.
std::string rotated(const std::string& other, const std::string& part) {
  return fmt::format(
      "program rotated<n: int32>(q: float16[n, 3, 128], c: float32[n, 64]) {{\n  kernel bx in (n + 3) // 4 threads 64 "
      "{{\n"
      "    fragment f: float32[4, 64]\n    copy c[bx * 4 : +4, 0 : +64] -> f\n    serial h in 3 {{\n"
      "      parallel i, j in 4, 64 {{\n        if bx * 4 + i < n {{\n"
      "          let low: float32 = float32(q[bx * 4 + i, {1}, j])\n"
      "          let high: float32 = float32(q[bx * 4 + i, {1}, {0}])\n"
      "          q[bx * 4 + i, {1}, j] = float16(low * f[i, j] - high)\n"
      "          q[bx * 4 + i, {1}, {0}] = float16(high * f[i, j] + low)\n        }}\n      }}\n    }}\n  }}\n}}",
      other, part);
}

TEST(OwnElements, AreLoadedAndStoredTogetherWithoutBarriers) {
  EXPECT_THAT(expect_interpreted(rotated("j + 64", "h")),
              AllOf(HasSubstr("copy_vector<8>(&q_v"), Not(HasSubstr("sync_threads"))));
  // The same part in each iteration.
  EXPECT_THAT(expect_interpreted(rotated("j + 64", "h // 2")), HasSubstr("sync_threads"));
  EXPECT_THAT(expect_interpreted(rotated("j + 64", "1")), HasSubstr("sync_threads"));
}

std::string apart(const std::string& accesses) {
  const ir::Program program = parse(
      "program p(x: float32[64, 64]) {\n  kernel bx in 4 threads t in 32 {\n    let row: int32 = t // 4\n    serial k "
      "in 2 {\n      serial h in 4 {\n        serial j in 8 {\n" +
      accesses + "        }\n      }\n    }\n  }\n}");
  const ir::Kernel& kernel = program.kernels[0];
  std::string found;
  ir::walk(
      kernel.body,
      [&](const ir::Stmt& stmt) {
        const auto* loop = ir::as<ir::For>(stmt);
        if (loop && !targets::gpu::memory_apart(kernel, *loop, targets::gpu::facts_of(kernel)).empty())
          found += loop->vars[0]->name;
      },
      [](const ir::Expr&) {});
  return found;
}

// What threads or loops around choose is no distance between iterations.
TEST(OwnElements, AreThoseOfAllThreads) {
  EXPECT_EQ(apart("          x[bx * 8 + h, j] = x[h + bx * 8, t]\n"), "h");
  EXPECT_EQ(apart("          x[h * 8 + j, 0] = x[h * 8 + 7, 1]\n"), "h");
  EXPECT_EQ(apart("          x[h * 7 + j, 0] = x[h * 7, 1]\n"), "");
  EXPECT_EQ(apart("          x[h * 8 + row, 0] = 1.0\n"), "h");
  EXPECT_EQ(apart("          x[h * 4 + row, 0] = 1.0\n"), "");
  EXPECT_EQ(apart("          x[h + t, 0] = 1.0\n"), "");
  EXPECT_EQ(apart("          x[h + k, 0] = 1.0\n"), "");
  EXPECT_EQ(apart("          x[h + bx, 0] = x[h + 1, 0]\n"), "");
  EXPECT_EQ(apart("          x[h, 0] = x[3 - h, 0]\n"), "");
}

// Rows of a tensor that an iteration writes and others read, one step apart.
TEST(OwnElements, AreNotThoseOfTheNextIteration) {
  const auto program = [](const std::string& from) {
    return "program steps(x: float32[8, 64]) {\n  kernel bx in 1 threads 64 {\n    serial h in 4 {\n"
           "      parallel j in 64 {\n        x[h * 2, j] = x[" +
           from + ", 63 - j] + 1.0\n      }\n    }\n  }\n}";
  };
  EXPECT_THAT(expect_interpreted(program("h * 2 + 1")), Not(HasSubstr("sync_threads")));
  EXPECT_THAT(expect_interpreted(program("(h * 2 + 6) % 8")), HasSubstr("sync_threads"));
}

}  // namespace
}  // namespace tilepilot::testing
