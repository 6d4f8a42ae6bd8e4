#include "eval/host/tensors/call_memory.h"

#include <ATen/Functions.h>
#include <gmock/gmock.h>

#include "eval/host/callable.h"
#include "eval/host/host_state.h"
#include "eval/torch/gpu.h"
#include "eval/worker/candidate/fresh_memory.h"

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

// Where launches do nothing, a block that an earlier call has freed must not hold an answer either.
TEST(CallMemory, FillsAllThatIsMadeWhereLaunchesDoNothing) {
  CallMemory memory;
  memory.begin([](const at::Tensor& tensor) { tensor.fill_(3); });
  const at::Tensor for_kernel = at::full({1000}, 7.0), by_factory = at::full({1000}, 7.0), none = at::empty({0});
  EXPECT_TRUE(memory.for_kernel(for_kernel).is_same(for_kernel));
  EXPECT_TRUE(memory.unseen(by_factory).is_same(by_factory));
  EXPECT_TRUE(for_kernel.eq(3).all().item<bool>() && by_factory.eq(3).all().item<bool>());
  EXPECT_TRUE(memory.for_kernel(none).is_same(none));
  memory.begin();
  const at::Tensor again = at::full({1000}, 7.0);
  EXPECT_TRUE(memory.for_kernel(again).eq(7).all().item<bool>() && memory.unseen(again).is_same(again));
}

// Memory of `meta` stands for a GPU's here: nobody looks at it.
TEST(CallMemory, IsAskedForTheOutputsOfKernels) {
  HostState state({.device = "meta"});
  state.set_device(c10::DeviceType::Meta);
  ASSERT_NE(state.call_memory(), nullptr);
  int filled = 0;
  const auto allocate = [&] { return state.tensors().allocate(ir::kFloat32, {8}, {}).ok(); };
  state.call_memory()->begin([&](const at::Tensor& tensor) { filled += static_cast<int>(tensor.numel()); });
  EXPECT_TRUE(allocate());
  EXPECT_EQ(filled, 8);
  state.call_memory()->begin();
  EXPECT_TRUE(allocate());
  EXPECT_EQ(filled, 8);
}

// What is freed last is what the allocator gives first.
TEST(CallMemory, IsAskedForTheOutputsOfKernelsOnAGpu) {
  if (!libtorch_sees_gpu()) GTEST_SKIP() << "LibTorch sees no GPU";
  HostState state({.device = gpu_device().str()});
  state.set_device(gpu_device());
  const auto freed = [&] {
    const stage::Value answer = state.wrap(at::full({1 << 20}, 7.0, at::device(gpu_device())));
    return tensor_of(answer)->data_ptr();
  };
  const auto output = [&] { return *tensor_of(*state.tensors().allocate(ir::kFloat32, {1 << 20}, {})); };
  state.call_memory()->begin();
  const void* given = freed();
  EXPECT_EQ(output().data_ptr(), given);
  state.call_memory()->begin(fill_with_random_bytes);
  freed();
  const at::Tensor random = output();
  EXPECT_TRUE(random.isfinite().all().item<bool>());
  EXPECT_FALSE(random.eq(7).any().item<bool>());
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
