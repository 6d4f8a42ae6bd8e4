// What differs between the processor and a GPU, tried where there is no GPU: with the processor in its place, with
// LibTorch's `meta` device, which has no memory, and with kernels that only say they failed.
#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Functions.h>
#include <ATen/core/grad_mode.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <gmock/gmock.h>

#include <thread>

#include "eval/host/callable.h"
#include "eval/host/host_state.h"
#include "eval/host/tensors/moved_tensors.h"
#include "eval/host/torch_host.h"
#include "eval/torch/gpu.h"
#include "eval/torch/replay.h"
#include "eval/torch/stopwatch.h"
#include "eval/torch/widened_call.h"
#include "eval/worker/candidate/fresh_memory.h"
#include "eval/worker/candidate/launches/watched_backend.h"
#include "eval/worker/truth/compare/digest.h"
#include "tests/torch/python_runner.h"

namespace tilepilot::eval {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

const c10::Device kProcessor = c10::DeviceType::CPU;

TEST(MovedTensors, KeepWhatTheyShareAndLeaveTheirOldMemory) {
  at::NoGradGuard no_grad;
  at::Tensor base = at::arange(12, at::kFloat).reshape({3, 4}), view = base.t(), slice = base.narrow(0, 1, 2);
  at::Tensor tied = base, alone = at::arange(3);
  const at::Tensor expected = base.clone();
  const void* before = base.data_ptr();
  move_tensors({base, view, slice, tied, alone, at::Tensor()}, kProcessor);
  EXPECT_NE(base.data_ptr(), before);
  EXPECT_TRUE(base.equal(expected));
  EXPECT_EQ(view.strides(), at::IntArrayRef({1, 4}));
  base.fill_(7);
  EXPECT_TRUE(view.eq(7).all().item<bool>());
  EXPECT_TRUE(slice.eq(7).all().item<bool>());
  EXPECT_TRUE(tied.eq(7).all().item<bool>());
  EXPECT_TRUE(alone.equal(at::arange(3)));
}

TEST(MovedTensors, AreMovedInParametersToo) {
  at::Tensor parameter = at::ones({2}).set_requires_grad(true);
  move_tensors({parameter}, kProcessor);
  EXPECT_TRUE(parameter.requires_grad());
  EXPECT_TRUE(parameter.equal(at::ones({2})));
}

TEST(Stopwatch, AddsUpWhatLiesBetweenStartsAndStops) {
  auto stopwatch = stopwatch_for(kProcessor);
  const auto short_while = std::chrono::milliseconds(20);
  for (int call = 0; call < 2; ++call) {
    stopwatch->start();
    std::this_thread::sleep_for(short_while);
    stopwatch->stop();
    std::this_thread::sleep_for(4 * short_while);
  }
  const double seconds = stopwatch->read();
  EXPECT_GE(seconds, 0.04);
  EXPECT_LT(seconds, 0.16);
  EXPECT_EQ(stopwatch->read(), 0);
}

// Seconds of products, on the current stream or on another one.
double seconds_of_products(bool on_another_stream) {
  const c10::Device gpu = gpu_device();
  const c10::impl::VirtualGuardImpl guard(gpu.type());
  const at::Tensor matrix = at::ones({4096, 4096}, at::device(gpu));
  at::mm(matrix, matrix);
  synchronize_gpu();
  auto stopwatch = stopwatch_for(gpu);
  stopwatch->start();
  const c10::Stream before = guard.getStream(gpu);
  if (on_another_stream) guard.exchangeStream(guard.getStreamFromGlobalPool(gpu));
  for (int i = 0; i < 8; ++i) at::mm(matrix, matrix);
  guard.exchangeStream(before);
  stopwatch->stop();
  return stopwatch->read();
}

TEST(Stopwatch, CountsWorkOnOtherStreamsOfAGpu) {
  if (!libtorch_sees_gpu()) GTEST_SKIP() << "LibTorch sees no GPU";
  // Other programs use the GPU too: the least of several tells what the work takes.
  double usual = 1e9, hidden = 1e9;
  for (int i = 0; i < 7; ++i) {
    usual = std::min(usual, seconds_of_products(false));
    hidden = std::min(hidden, seconds_of_products(true));
  }
  EXPECT_GT(usual, 1e-3);
  EXPECT_GT(hidden, 0.5 * usual);  // work that is not seen takes next to nothing
}

TEST(Digest, IsTheSameOnAGpu) {
  if (!libtorch_sees_gpu()) GTEST_SKIP() << "LibTorch sees no GPU";
  const at::Tensor numbers = at::arange(1001, at::kFloat), odd = numbers.narrow(0, 3, 997);
  for (const at::Tensor& tensor : {numbers, odd, odd.to(at::kHalf), odd.gt(500), at::arange((1 << 24) + 1000)})
    EXPECT_EQ(digest_of(tensor), digest_of(tensor.to(gpu_device())));
}

TEST(MovedTensors, ShareMemoryOnAGpuToo) {
  if (!libtorch_sees_gpu()) GTEST_SKIP() << "LibTorch sees no GPU";
  at::NoGradGuard no_grad;
  at::Tensor base = at::zeros({3, 4}), view = base.t();
  move_tensors({base, view}, gpu_device());
  EXPECT_TRUE(base.is_cuda() && view.is_cuda());
  base.fill_(7);
  EXPECT_TRUE(view.cpu().eq(7).all().item<bool>());
}

// LibTorch multiplies no integers on a GPU; a script that a person runs moves them itself, to a CPU that is the same
// place here.
TEST(TorchHost, ScriptsMultiplyIntegersOnAGpu) {
  if (!libtorch_sees_gpu()) GTEST_SKIP() << "LibTorch sees no GPU";
  for (const bool is_script : {true, false}) {
    HostState state({.device = gpu_device().str(), .is_script = is_script});
    const at::Tensor numbers = at::arange(12, at::kInt).reshape({3, 4});
    stage::CallArgs args;
    args.positional = {state.wrap(numbers.to(gpu_device())), state.wrap(numbers.t().to(gpu_device()))};
    const auto product = state.torch_function(stage::Name("matmul"))->call(state, nullptr, args);
    ASSERT_EQ(product.ok(), is_script);
    if (!is_script) continue;
    const at::Tensor& result = *tensor_of(*product);
    EXPECT_TRUE(result.is_cuda());
    EXPECT_TRUE(result.cpu().equal(at::mm(numbers, numbers.t())));
  }
}

TEST(CallOnCpu, WritesWhatItChangesOnTheGpuToo) {
  if (!libtorch_sees_gpu()) GTEST_SKIP() << "LibTorch sees no GPU";
  const at::Tensor sums = at::zeros({4}, at::device(gpu_device()).dtype(at::kInt));
  torch::jit::Stack stack = {sums, at::ones({4}, at::kInt).to(gpu_device())};
  call_on_cpu(stack, [&] {
    EXPECT_TRUE(stack[0].toTensor().is_cpu() && stack[1].toTensor().is_cpu());
    stack[0].toTensor().add_(stack[1].toTensor());
    stack.pop_back();
  });
  EXPECT_TRUE(stack[0].toTensor().is_same(sums));
  EXPECT_TRUE(sums.cpu().equal(at::ones({4}, at::kInt)));
}

TEST(FreshMemoryOfAGpu, IsRandomWhereNothingWasWritten) {
  if (!libtorch_sees_gpu()) GTEST_SKIP() << "LibTorch sees no GPU";
  const auto options = at::device(gpu_device()).dtype(at::kFloat);
  DeviceMemory memory(c10::DeviceType::CUDA);
  memory.renew(1);
  { at::empty({3'000'000}, options).fill_(7); }
  renew_fresh_memory(5);
  memory.renew(3);
  for (int call = 0; call < 3; ++call) {
    const at::Tensor made = at::empty({3'000'000}, options);
    EXPECT_TRUE(made.isfinite().all().item<bool>());
    EXPECT_FALSE(made.eq(7).any().item<bool>());
    EXPECT_GT(unwritten_elements(made, 5), 2'900'000);
  }
}

TEST(Digest, IsTheSameByOperatorsAsByHand) {
  at::Generator generator = at::detail::createCPUGenerator(3);
  const at::Tensor numbers = at::empty({129}, at::kFloat).uniform_(0, 1, generator);
  const at::Tensor odd = numbers.narrow(0, 3, 101);
  for (const at::Tensor& tensor :
       {numbers, odd, odd.to(at::kHalf), numbers.gt(0.5), odd.reshape({1, 101}).expand({3, 101}), at::empty({0}),
        at::ones({1}, at::kByte), at::full({5}, -1, at::kLong)})
    EXPECT_EQ(digest_of(tensor), digest_of(tensor, DigestPlace::operators)) << tensor.sizes();
}

TEST(Digest, ChangesWithElementsTheirOrderAndTheirForm) {
  const at::Tensor numbers = at::arange(64, at::kFloat);
  const std::string digest = digest_of(numbers);
  EXPECT_EQ(digest, digest_of(numbers.clone()));
  for (int64_t i : {0, 1, 31, 63}) {
    at::Tensor other = numbers.clone();
    other[i] = -0.5;
    EXPECT_NE(digest, digest_of(other)) << i;
  }
  EXPECT_NE(digest, digest_of(numbers.flip(0)));
  EXPECT_NE(digest, digest_of(numbers.reshape({8, 8})));
  EXPECT_NE(digest, digest_of(numbers.roll(2)));
}

// Tensors that the export made on the processor are made where the replay runs. LibTorch knows most operators of `meta`
// only in Python, but the random ones here.
TEST(Replay, RunsOnTheDeviceItIsPreparedFor) {
  auto reference = load_reference(testing::exported("tests/torch/models/scale_rows.py"));
  ASSERT_TRUE(reference.ok());
  auto weights = load_safetensors(reference->weights);
  const c10::Device meta = c10::DeviceType::Meta;
  auto inputs = make_inputs(*reference, *make_state(reference->inputs, *reference, *weights), 1, meta);
  ASSERT_TRUE(inputs.ok()) << inputs.error().message;
  EXPECT_EQ(inputs->at(0).toTensor().device(), meta);
  const State state = copy_state(*make_state(reference->forward, *reference, *weights), true, meta);
  const auto made = std::find_if(state.begin(), state.end(), [](auto& tensor) { return tensor.defined(); });
  ASSERT_NE(made, state.end());
  EXPECT_EQ(made->device(), meta);
  EXPECT_EQ(made->scalar_type(), at::kDouble);
}

// A kernel whose launches succeed, and which the GPU finds faulty later.
class QuietKernel final : public runtime::CompiledKernel {
 public:
  explicit QuietKernel(ir::Program program) : program_(std::move(program)) {}
  Status launch(const std::vector<runtime::Argument>&, const runtime::ParallelFor&, Span) override {
    ++launches;
    return {};
  }
  const ir::Program& program() const override { return program_; }
  const std::string& source() const override { return program_.name; }
  static inline int launches = 0;

 private:
  ir::Program program_;
};

class QuietBackend final : public runtime::KernelBackend {
 public:
  Result<std::shared_ptr<runtime::CompiledKernel>> compile(const ir::Program& program, DiagnosticList&) override {
    return std::make_shared<QuietKernel>(program);
  }
};

class WatchedLaunch : public ::testing::Test {
 protected:
  Status launch() {
    auto backend = watch(std::make_unique<QuietBackend>(), log_, marker_);
    ir::Program program;
    program.name = "softmax";
    DiagnosticList warnings;
    return (*backend->compile(program, warnings))->launch({}, {}, Span{0, 4, 9});
  }
  LaunchLog log_;
  CrashMarker marker_;
};

TEST_F(WatchedLaunch, IsToldOfTheKernelsOwnFault) {
  const int before = QuietKernel::launches;
  log_.wait = [&]() -> Status {
    if (QuietKernel::launches == before) return {};
    EXPECT_STREQ(marker_.kernel, "softmax");  // that it hangs would be known, too
    return Status(make_error(DiagnosticKind::device_failed, {}, "CUDA error: an illegal memory access"));
  };
  auto status = launch();
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().kind, DiagnosticKind::device_failed);
  EXPECT_THAT(status.error().message, AllOf(HasSubstr("the generated kernel `softmax`"), HasSubstr("illegal memory")));
  EXPECT_EQ(status.error().span.begin, 4);
}

TEST_F(WatchedLaunch, IsNotBlamedForAFaultBefore) {
  const int before = QuietKernel::launches;
  log_.wait = []() -> Status { return Status(make_error(DiagnosticKind::device_failed, {}, "CUDA error: earlier")); };
  auto status = launch();
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().message, "CUDA error: earlier");
  EXPECT_EQ(QuietKernel::launches, before);
}

// Between the two another process may run on the GPU, and leave its shared memory full of zeros.
TEST_F(WatchedLaunch, IsPreparedForAfterTheWaitBeforeIt) {
  const int before = QuietKernel::launches;
  std::string order;
  log_.wait = [&]() -> Status {
    order += QuietKernel::launches == before ? "wait " : "launched wait";
    return {};
  };
  log_.before_launch = [&] { order += QuietKernel::launches == before ? "fill " : "late "; };
  EXPECT_TRUE(launch().ok());
  EXPECT_EQ(order, "wait fill launched wait");
  log_.waits = false;  // a fill would be in the time
  EXPECT_TRUE(launch().ok());
  EXPECT_EQ(order, "wait fill launched wait");
}

TEST_F(WatchedLaunch, WaitsForNothingWhileCallsAreTimed) {
  int waits = 0;
  log_.wait = [&]() -> Status {
    ++waits;
    return {};
  };
  EXPECT_TRUE(launch().ok());
  EXPECT_EQ(waits, 2);
  log_.waits = false;
  EXPECT_TRUE(launch().ok());
  EXPECT_EQ(waits, 2);
  EXPECT_EQ(log_.launches, 2);
}

}  // namespace
}  // namespace tilepilot::eval
