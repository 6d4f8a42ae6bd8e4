// Orders that programs ask of atomic accesses: they stand in the text as fences, and the emulator finds what is missing
// without them.
#include <gmock/gmock.h>

#include "tests/cpu/kernel_fixture.h"
#include "tests/cuda/emulated.h"

namespace tilepilot::testing {
namespace {

using targets::gpu::Architecture;
using ::testing::HasSubstr;

std::string last_block(const std::string& order) {
  return R"(program last(x: float32[4], part: float32[4], n: int32[1], y: float32[1]) {
  kernel bx in 4 threads tx in 32 {
    if tx == 0 {
      part[bx] = x[bx] * 2.0
      atomic add n[0], 1)" +
         order + R"( -> before: int32
      if before == 3 {
        y[0] = part[0] + part[1] + part[2] + part[3]
      }
    }
  }
})";
}

TEST(MemoryOrder, IsKeptByFences) {
  const std::string update = "atomic_update<add_update>(n, 1);", fence = "fence_device();";
  const auto text_around = [&](const std::string& order) {
    const auto code = targets::cuda::generate(parse(last_block(order)), Architecture::sm_80);
    EXPECT_TRUE(code.ok());
    const size_t at = code->source.find(update);
    EXPECT_NE(at, std::string::npos) << code->source;
    return std::pair(code->source.substr(0, at), code->source.substr(at));
  };
  for (const auto& [order, before, after] :
       {std::tuple("", false, false), std::tuple(" order acquire", false, true),
        std::tuple(" order release", true, false), std::tuple(" order acq_rel", true, true),
        std::tuple(" order seq_cst", true, true)}) {
    const auto around = text_around(order);
    EXPECT_EQ(around.first.find(fence) != std::string::npos, before) << order << around.first;
    EXPECT_EQ(around.second.find(fence) != std::string::npos, after) << order << around.second;
  }
}

TEST(MemoryOrder, OrdersWhatBlocksLeaveForTheLast) {
  EmulatedBatch batch(Architecture::sm_80);
  for (const char* order : {" order acq_rel", " order seq_cst", " order release", " order acquire", ""})
    ASSERT_TRUE(batch.add(parse(last_block(order))).ok());
  batch.compile();
  if (HasFatalFailure()) return;
  for (size_t k = 0; k < batch.size(); ++k) {
    Array x(ir::kFloat32, {4}), part(ir::kFloat32, {4}), n(ir::kInt32, {1}), y(ir::kFloat32, {1});
    for (int i = 0; i < 4; ++i) x.as<float>()[i] = static_cast<float>(i + 1);
    const std::string wrong = batch.run(k, {x.view(), part.view(), n.view(), y.view()});
    if (k < 2) {
      EXPECT_EQ(wrong, "") << batch.source(k);
      EXPECT_EQ(y.as<float>()[0], 20.0f);
    } else {
      EXPECT_THAT(wrong, HasSubstr("data race")) << batch.source(k);
    }
  }
}

// What all threads of a block have written is told by one of them, once it is there.
TEST(MemoryOrder, OfABlockIsThatOfAllItsThreads) {
  const auto code = targets::cuda::generate(parse(R"(program tell(x: float32[4, 128], y: float32[4, 128], n: int32[4]) {
  kernel bx in 4 threads 128 {
    parallel i in 128 {
      y[bx, i] = x[bx, i] * 2.0
    }
    atomic store n[bx], 1 order release
  }
})"),
                                            Architecture::sm_80);
  ASSERT_TRUE(code.ok()) << code.error().message;
  size_t at = 0;
  for (const char* part : {"y[", "sync_threads();", "fence_device();", "atomic_update<put_update>(n"}) {
    at = code->source.find(part, at);
    ASSERT_NE(at, std::string::npos) << part << code->source;
  }
}

}  // namespace
}  // namespace tilepilot::testing
