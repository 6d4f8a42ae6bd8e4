// Random exchanges between threads: with the barriers that thread_sync puts, programs mean what they mean with a
// barrier after every statement.
#include <fmt/format.h>

#include <random>

#include "compiler/ir/visit.h"
#include "compiler/passes/threads/thread_regions.h"
#include "compiler/passes/threads/thread_sync.h"
#include "same_meaning.h"
#include "tests/rounds.h"

namespace tilepilot::ir::testing {
namespace {

constexpr int kThreads = 64;

// Writes the same statements twice: as a program does that leaves barriers out, and with a barrier after each of them.
class Exchange {
 public:
  explicit Exchange(uint32_t seed) : random_(seed) {}

  std::pair<std::string, std::string> programs() {
    list(2, "", {});
    const std::string last = "y[bx, tx] = r[0] + r[1] + s[tx] + t[tx]";
    return {kernel(bare_ + last + "\n"), kernel(ordered_ + last + "\n")};
  }

 private:
  std::mt19937 random_;
  std::string bare_, ordered_;
  int loops_ = 0;

  int pick(int limit) { return static_cast<int>(random_() % static_cast<uint32_t>(limit)); }

  static std::string kernel(const std::string& body) {
    return "program f(x: float32[64], y: float32[2, 64]) {\n  kernel bx in 2 threads tx in 64 {\n"
           "    shared s: float32[64]\n    shared t: float32[64]\n    local r: float32[2]\n    local u: float32[1]\n"
           "    fill s = 1.0\n    fill t = 2.0\n    r[0] = x[tx]\n    r[1] = x[63 - tx]\n" +
           body + "  }\n}\n";
  }

  // Each thread has an element of its own.
  std::string permuted(const std::string& loop) {
    switch (pick(loop.empty() ? 5 : 7)) {
      case 0:
        return "tx";
      case 1:
        return fmt::format("{} - tx", kThreads - 1);
      case 2:
        return fmt::format("(tx * {} + {}) % {}", 2 * pick(8) + 1, pick(kThreads), kThreads);
      case 3:
        return "tx // 8 + tx % 8 * 8";
      case 5:
        return fmt::format("(tx + {} * {}) % {}", loop, 1 + pick(40), kThreads);
      default:
        return fmt::format("tx ^ {}", pick(kThreads));
    }
  }
  std::string any_element(const std::string& loop) {
    return pick(3) == 0   ? fmt::format("tx // {}", 1 + pick(8))
           : pick(4) == 0 ? fmt::format("{}", pick(kThreads))
                          : permuted(loop);
  }

  // `guards`: what must hold here; those that threads answer differently guard each statement by itself where barriers
  // stand between.
  void emit(const std::string& statement, const std::vector<std::string>& guards) {
    bare_ += statement + "\n";
    std::string guarded = statement + "\n";
    for (const std::string& guard : guards) guarded = fmt::format("if {} {{\n{}}}\n", guard, guarded);
    ordered_ += guarded + "sync\n";
  }
  void both(const std::string& text) {
    bare_ += text;
    ordered_ += text;
  }

  void list(int depth, const std::string& loop, const std::vector<std::string>& guards) {
    for (int count = 1 + pick(4); count > 0; --count) statement(depth, loop, guards);
  }

  void statement(int depth, const std::string& loop, const std::vector<std::string>& guards) {
    const char *one = pick(2) == 0 ? "s" : "t", *other = *one == 's' ? "t" : "s";
    const int own = pick(2);
    switch (pick(depth > 0 ? 7 : 4)) {
      case 0:
        return emit(fmt::format("{}[{}] = r[{}] * 0.5 + 1.0", one, permuted(loop), own), guards);
      case 1:
        return emit(fmt::format("r[{}] = {}[{}] + 1.0", own, one, any_element(loop)), guards);
      case 2:
        return emit(fmt::format("{}[{}] = {}[{}] + r[{}]", one, permuted(loop), other, any_element(loop), own), guards);
      case 3:
        return emit(fmt::format("u[0] = {}[{}]\nr[{}] = r[{}] + u[0]", one, any_element(loop), own, own), guards);
      case 4:
        return in_loop(depth, guards);
      case 5: {
        both("if bx == 1 {\n");
        list(depth - 1, loop, guards);
        return both("}\n");
      }
      default: {
        std::vector<std::string> inner = guards;
        inner.push_back(fmt::format("tx {} {}", pick(2) == 0 ? "<" : "% 5 !=", pick(40)));
        bare_ += fmt::format("if {} {{\n", inner.back());
        list(depth - 1, loop, inner);
        bare_ += "}\n";
      }
    }
  }

  void in_loop(int depth, const std::vector<std::string>& guards) {
    const std::string var = fmt::format("k{}", loops_++);
    both(fmt::format("serial {} in {} {{\n", var, pick(4)));
    list(depth - 1, var, guards);
    both("}\n");
  }
};

Program parse(const std::string& text) {
  SourceMap sources;
  DiagnosticList diagnostics;
  auto program = read_text(sources, sources.add("program.ir", text), diagnostics);
  EXPECT_TRUE(program) << diagnostics.items().front().message << "\n" << text;
  return program.value_or(Program{});
}

TEST(ThreadSync, RandomExchangesMeanWhatTheyDoWithAllBarriers) {
  int missed = 0, same = 0;
  for (int seed = 0; seed < rounds(400); ++seed) {
    const auto [bare, ordered] = Exchange(static_cast<uint32_t>(seed)).programs();
    const Program program = parse(bare), again = passes::thread_sync(program);
    missed += same_nodes(program, again) ? 0 : 1;
    DiagnosticList diagnostics;
    ASSERT_TRUE(verify(again, diagnostics)) << "seed " << seed << diagnostics.items().front().message;
    ASSERT_NE(compare_meaning(parse(ordered), again, uint32_t(seed)), Meaning::different) << "seed " << seed << "\n"
                                                                                          << bare << to_text(again);
    const auto regions = passes::thread_regions(again);
    ASSERT_TRUE(regions.ok()) << "seed " << seed << ": " << regions.error().message << "\n" << to_text(again);
    ASSERT_NE(compare_meaning(again, *regions, uint32_t(seed)), Meaning::different) << "seed " << seed;
    ++same;
  }
  EXPECT_EQ(same, rounds(400));
  EXPECT_GT(missed, rounds(200));
}

}  // namespace
}  // namespace tilepilot::ir::testing
