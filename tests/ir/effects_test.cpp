// What statements are said to read and write.
#include "compiler/ir/effects.h"

#include <gtest/gtest.h>

#include "compiler/ir/search.h"
#include "compiler/ir/text/text.h"

namespace tilepilot::ir {
namespace {

class Touches : public ::testing::Test {
 protected:
  void SetUp() override {
    DiagnosticList diagnostics;
    auto program = read_text(sources_, sources_.add("touches.ir", R"(program f(x: float32[64], y: float32[64]) {
  kernel bx in 1 threads 32 {
    shared s: float32[8, 8]
    shared v: float32[64] view s
    shared a: float16[16, 16]
    fragment c: float32[16, 16]
    parallel i in 64 {
      v[i] = x[i] + x[63 - i]
    }
    gemm c += a @ a
    gemm c = a @ a
    copy v -> y
  }
})"),
                             diagnostics);
    ASSERT_TRUE(program) << diagnostics.items().front().message;
    kernel_ = program->kernels[0];
    all_ = statements(kernel_.body);
    ASSERT_EQ(all_.size(), 4u);
  }

  const BufferData* tile(const std::string& name) const {
    for (const Buffer& buffer : kernel_.allocations)
      if (buffer->name == name) return buffer.get();
    return nullptr;
  }

  SourceMap sources_;
  Kernel kernel_;
  std::vector<Stmt> all_;
};

TEST_F(Touches, AreCountedByName) {
  EXPECT_EQ(count_accesses(kernel_.body, tile("v")), 2);
  EXPECT_EQ(count_writes(kernel_.body, tile("v")), 1);
  EXPECT_EQ(count_accesses(kernel_.body, tile("s")), 0);
  EXPECT_EQ(count_accesses(all_[0], tile("a")), 0);
}

TEST_F(Touches, OfViewsAreOfTheirMemory) {
  EXPECT_TRUE(effects_of(all_[0]).writes.contains(tile("v")));
  EXPECT_FALSE(effects_of(all_[0]).writes.contains(tile("s")));
  EXPECT_TRUE(memory_effects_of(all_[0]).writes.contains(tile("s")));
  EXPECT_TRUE(memory_effects_of(all_[3]).reads.contains(tile("s")));
  EXPECT_EQ(memory_of(*tile("v")), tile("s"));
  EXPECT_EQ(memory_of(*tile("s")), tile("s"));
}

TEST_F(Touches, OfProductsThatAccumulateAreReads) {
  EXPECT_TRUE(effects_of(all_[1]).reads.contains(tile("c")));
  EXPECT_FALSE(effects_of(all_[2]).reads.contains(tile("c")));
  EXPECT_TRUE(effects_of(all_[2]).writes.contains(tile("c")));
}

TEST_F(Touches, OfAStatementItselfLeaveOutWhatIsBelow) {
  int own = 0, all = 0;
  each_own_effect(all_[0], [&](const Buffer&, bool) { ++own; });
  each_effect(all_[0], [&](const Buffer&, bool) { ++all; });
  EXPECT_EQ(own, 0);
  EXPECT_EQ(all, 3);
}

TEST_F(Touches, AreSearchedFor) {
  EXPECT_TRUE(accesses_any(all_[0], {tile("a"), tile("v")}));
  EXPECT_FALSE(accesses_any(all_[0], {tile("a"), tile("s")}));
  const auto is_fragment = [](const Buffer& buffer) { return buffer->scope == Scope::fragment; };
  EXPECT_TRUE(writes_any(kernel_.body, is_fragment));
  EXPECT_FALSE(writes_any(all_[3], is_fragment));
}

}  // namespace
}  // namespace tilepilot::ir
