#include "eval/host/tensors/call_memory.h"

#include <ATen/Functions.h>
#include <gmock/gmock.h>

#include "eval/host/callable.h"
#include "eval/host/host_state.h"
#include "eval/torch/gpu.h"

namespace tilepilot::eval {
namespace {

TEST(CallMemory, GivesNoBlockThatTheCallHasHad) {
  CallMemory memory;
  const at::Tensor first = at::full({1000}, 7.0);
  EXPECT_TRUE(memory.unseen(first).is_same(first));
  memory.note(first);
  // As if the block had been freed and taken again.
  const at::Tensor other = memory.unseen(first);
  EXPECT_FALSE(other.is_alias_of(first));
  EXPECT_EQ(other.sizes(), first.sizes());
  EXPECT_EQ(other.dtype(), first.dtype());
  const at::Tensor part = first.narrow(0, 10, 20);
  EXPECT_FALSE(memory.unseen(part).is_alias_of(first));
  memory.begin();
  EXPECT_TRUE(memory.unseen(first).is_same(first));
}

TEST(CallMemory, OverwritesWhereThereIsNoOtherBlock) {
  CallMemory memory;
  // So many that all blocks count as seen.
  const at::Tensor some[] = {at::full({64}, 7.0), at::full({64}, 8.0)};
  for (int i = 0; i < (1 << 16) + 2; ++i) memory.note(some[i % 2]);
  const at::Tensor again = memory.unseen(some[0]);
  EXPECT_TRUE(again.is_same(some[0]));
  EXPECT_TRUE(again.ne(7.0).all().item<bool>());
  EXPECT_TRUE(again.isfinite().all().item<bool>());
}

TEST(CallMemory, IsAskedByFactoriesOnAGpu) {
  if (!libtorch_sees_gpu()) GTEST_SKIP() << "LibTorch sees no GPU";
  HostState state({.device = gpu_device().str()});
  state.set_device(gpu_device());
  ASSERT_NE(state.call_memory(), nullptr);
  const auto empty_like = [&](const stage::Value& other) {
    stage::CallArgs args;
    args.positional = {other};
    return *state.torch_function(stage::Name("empty_like"))->call(state, nullptr, args);
  };
  const stage::Value given = state.wrap(at::zeros({1 << 20}, at::device(gpu_device())));
  state.call_memory()->begin();
  void* freed = nullptr;
  {
    const stage::Value answer = state.wrap(at::full({1 << 20}, 7.0, at::device(gpu_device())));
    freed = tensor_of(answer)->data_ptr();
  }
  EXPECT_NE(tensor_of(empty_like(given))->data_ptr(), freed);
  state.call_memory()->begin();
  EXPECT_TRUE(leaves_memory_unwritten("new_empty"));
  EXPECT_FALSE(leaves_memory_unwritten("zeros"));
}

}  // namespace
}  // namespace tilepilot::eval
