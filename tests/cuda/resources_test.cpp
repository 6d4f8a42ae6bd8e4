// What is said about kernels that ask for more than a block of a GPU has, and calls that no GPU can serve.
#include <dlfcn.h>
#include <fmt/format.h>
#include <gmock/gmock.h>

#include "compiler/runtime/cuda/cuda_kernel.h"
#include "compiler/targets/cuda/codegen.h"
#include "tests/cpu/kernel_fixture.h"
#include "tests/fake_library.h"

namespace tilepilot::testing {
namespace {

namespace fs = std::filesystem;
using targets::gpu::Architecture;
using ::testing::HasSubstr;

Result<targets::cuda::GeneratedCode> generated(const std::string& text,
                                               Architecture architecture = Architecture::sm_90a) {
  return targets::cuda::generate(parse(text), architecture);
}

std::string staged_text(int64_t rows) {
  return fmt::format(R"(program p(A: float32[{0}, 64], B: float32[{0}, 64]) {{
  kernel bx in 1 threads 128 {{
    shared tile: float32[{0}, 64]
    shared small: float32[64]
    copy A -> tile
    copy A[0, 0 : 64] -> small
    copy small -> B[0, 0 : 64]
    copy tile -> B
  }}
}})",
                     rows);
}

TEST(Resources, fail_TilesBeyondSharedMemory) {
  EXPECT_TRUE(generated(staged_text(900)).ok());
  EXPECT_FALSE(generated(staged_text(900), Architecture::sm_80).ok());
  const auto code = generated(staged_text(1000));
  ASSERT_FALSE(code.ok());
  EXPECT_EQ(code.error().kind, DiagnosticKind::too_large_for_device);
  EXPECT_TRUE(code.error().span.valid());
  EXPECT_EQ(code.error().message, "this kernel needs 256256 bytes of shared memory; a block of the target has 232448");
  ASSERT_FALSE(code.error().notes.empty());
  EXPECT_EQ(code.error().notes[0].message, "`tile` takes 256000 bytes");
  EXPECT_TRUE(code.error().notes[0].span.valid());
}

std::string held_text(int64_t columns) {
  return fmt::format(R"(program p(A: float32[128, {0}], B: float32[128, {0}]) {{
  kernel bx in 1 threads 128 {{
    fragment held: float32[128, {0}]
    copy A -> held
    copy held -> B
  }}
}})",
                     columns);
}

TEST(Resources, FragmentsBeyondRegistersAreTold) {
  const auto fits = generated(held_text(128));
  ASSERT_TRUE(fits.ok());
  EXPECT_TRUE(fits->warnings.empty());
  const auto spills = generated(held_text(512));
  ASSERT_TRUE(spills.ok());
  ASSERT_EQ(spills->warnings.size(), 1u);
  EXPECT_EQ(spills->warnings[0].kind, DiagnosticKind::slow_on_device);
  EXPECT_TRUE(spills->warnings[0].span.valid());
  EXPECT_THAT(spills->warnings[0].message, HasSubstr("take 512 registers of each of 128 threads, which have 255"));
}

TEST(Resources, fail_FragmentsFarBeyondRegisters) {
  const auto code = generated(held_text(8192));
  ASSERT_FALSE(code.ok());
  EXPECT_EQ(code.error().kind, DiagnosticKind::too_large_for_device);
  EXPECT_TRUE(code.error().span.valid());
  EXPECT_THAT(code.error().message, HasSubstr("take 8192 registers of each of 128 threads"));
}

TEST(Resources, fail_ArraysBeyondTheMemoryOfAThread) {
  const auto text = [](int64_t rows) {
    return fmt::format(R"(program p(A: float32[64]) {{
  kernel bx in 1 threads tx in 64 {{
    local large: float32[{}, 1024]
    local small: float32[64]
    fill large = 1.0
    fill small = 1.0
    A[tx] = large[tx, tx] + small[tx]
  }}
}})",
                       rows);
  };
  EXPECT_TRUE(generated(text(127)).ok());
  const auto code = generated(text(128));
  ASSERT_FALSE(code.ok());
  EXPECT_EQ(code.error().kind, DiagnosticKind::too_large_for_device);
  EXPECT_TRUE(code.error().span.valid());
  EXPECT_EQ(code.error().message,
            "each thread of this kernel needs 524544 bytes for itself; the target gives it 524288");
  ASSERT_FALSE(code.error().notes.empty());
  EXPECT_EQ(code.error().notes[0].message, "`large` takes 524288 bytes");
}

std::string product_text(int64_t rows, int64_t threads, const std::string& type = "float16") {
  return fmt::format(R"(program p(A: {2}[{0}, 32], B: {2}[32, 32], C: float32[{0}, 32]) {{
  kernel bx in 1 threads {1} {{
    shared a: {2}[{0}, 32]
    shared b: {2}[32, 32]
    fragment c: float32[{0}, 32]
    copy A -> a
    copy B -> b
    gemm c = a @ b
    copy c -> C
  }}
}})",
                     rows, threads, type);
}

TEST(Resources, ProductsWithoutTensorCoresAreTold) {
  for (const auto& [rows, threads, why] :
       {std::tuple{64, 48, "48 threads are no whole warps"}, std::tuple{24, 64, "24 x 32 x 32 is no multiple of"},
        std::tuple{16, 96, "3 warps cannot share 16 x 32 evenly"}}) {
    const auto code = generated(product_text(rows, threads));
    ASSERT_TRUE(code.ok()) << code.error().message;
    ASSERT_EQ(code->warnings.size(), 1u) << why;
    EXPECT_EQ(code->warnings[0].kind, DiagnosticKind::slow_on_device);
    EXPECT_THAT(code->warnings[0].message, HasSubstr(why));
    EXPECT_TRUE(code->warnings[0].span.valid());
  }
  EXPECT_TRUE(generated(product_text(64, 128))->warnings.empty());
  EXPECT_TRUE(generated(product_text(64, 48, "float32"))->warnings.empty());  // no instruction could be used
}

// A GPU, and a compiler, made for the test.
// 256 blocks, which all have the same work.
std::string product_text(const std::string& cluster) {
  return fmt::format(R"(program product(a: float16[2048, 192], b: float16[192, 1024], c: float16[2048, 1024]) {{
  kernel bx, by in 16, 16 threads 256{} {{
    shared rows: float16[128, 64]
    shared columns: float16[64, 64]
    fragment sums: float32[128, 64]
    fill sums = 0.0
    pipelined k in 3 stages 2 {{
      copy a[by * 128 : +128, k * 64 : +64] -> rows
      copy b[k * 64 : +64, bx * 64 : +64] -> columns
      gemm sums += rows @ columns
    }}
    copy sums -> c[by * 128 : +128, bx * 64 : +64]
  }}
}})",
                     cluster);
}

class MadeUpGpu : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "tilepilot-gpu-XXXXXX").string();
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  void TearDown() override { fs::remove_all(folder_); }

  std::unique_ptr<runtime::KernelBackend> backend(int capability, const std::string& architecture = "") {
    runtime::cuda::CudaOptions options;
    options.device.library = fake_library(folder_, "libcuda.so.1", fake_driver_source(13000, 0, capability));
    options.nvrtc.library = fake_library(folder_, "libnvrtc.so.13", fake_nvrtc_source(13, 0, true));
    options.architecture = architecture;
    return runtime::cuda::cuda_backend(std::move(options));
  }

  fs::path folder_;
  DiagnosticList warnings_;
};

// Whatever stream is current at each launch, not at the first or when the kernel was compiled.
TEST_F(MadeUpGpu, LaunchesGoIntoTheCurrentStream) {
  std::string source = fake_driver_source();
  const std::string plain = "return c->threads[0] > 1024 ? 1 : 0; }";
  source.replace(source.find(plain), plain.size(), "last_stream = c->stream; return 0; }");
  source.insert(source.find("extern \"C\" int cuLaunchKernelEx"), "extern \"C\" { void* last_stream; }\n");
  runtime::cuda::CudaOptions options;
  options.device.library = fake_library(folder_, "libcuda.so.1", source);
  options.nvrtc.library = fake_library(folder_, "libnvrtc.so.13", fake_nvrtc_source(13, 0, true));
  int streams[2];
  void* current = nullptr;
  options.stream = [&] { return static_cast<runtime::cuda::Stream>(current); };
  void* driver = dlopen(options.device.library.c_str(), RTLD_NOW);
  ASSERT_NE(driver, nullptr);
  void** last = static_cast<void**>(dlsym(driver, "last_stream"));
  const auto kernel = runtime::cuda::cuda_backend(std::move(options))->compile(parse(held_text(128)), warnings_);
  ASSERT_TRUE(kernel.ok()) << render(kernel.error());
  alignas(16) static float memory[2][128 * 128];
  const auto tensor = [&](int k) { return runtime::TensorView{memory[k], ir::kFloat32, {128, 128}, {128, 1}}; };
  for (void* stream : {static_cast<void*>(streams), static_cast<void*>(streams + 1), static_cast<void*>(nullptr)}) {
    current = stream;
    const Status status = (*kernel)->launch({tensor(0), tensor(1)}, {}, Span{0, 0, 4});
    ASSERT_TRUE(status.ok()) << render(status.error());
    EXPECT_EQ(*last, stream);
  }
  dlclose(driver);
}

// Blocks that stay for several of the program's grid are as many as run at once; a cluster more would have its turn
// when all others are done.
TEST_F(MadeUpGpu, PersistentBlocksAreAllThereAtOnce) {
  std::string source = fake_driver_source();
  const std::string plain = "return c->threads[0] > 1024 ? 1 : 0; }";
  source.replace(source.find(plain), plain.size(), "blocks = c->grid[0]; return 0; }");
  source.insert(source.find("extern \"C\" int cuLaunchKernelEx"), "extern \"C\" { unsigned blocks; }\n");
  runtime::cuda::CudaOptions options;
  options.device.library = fake_library(folder_, "libcuda.so.1", source);
  options.nvrtc.library = fake_library(folder_, "libnvrtc.so.13", fake_nvrtc_source(13, 0, true));
  void* driver = dlopen(options.device.library.c_str(), RTLD_NOW);
  ASSERT_NE(driver, nullptr);
  const auto* blocks = static_cast<const unsigned*>(dlsym(driver, "blocks"));
  const auto backend = runtime::cuda::cuda_backend(std::move(options));
  for (const auto& [cluster, expected] : {std::pair{"", 132u}, {" cluster 2, 1", 132u}, {" cluster 4, 1", 120u}}) {
    const auto kernel = backend->compile(parse(product_text(cluster)), warnings_);
    ASSERT_TRUE(kernel.ok()) << render(kernel.error());
    std::vector<uint16_t> a(2048 * 192), c(2048 * 1024);
    const auto tensor = [](std::vector<uint16_t>& data, int64_t rows, int64_t columns) {
      return runtime::TensorView{data.data(), ir::kFloat16, {rows, columns}, {columns, 1}};
    };
    const Status status =
        (*kernel)->launch({tensor(a, 2048, 192), tensor(a, 192, 1024), tensor(c, 2048, 1024)}, {}, Span{0, 0, 4});
    ASSERT_TRUE(status.ok()) << render(status.error());
    EXPECT_EQ(*blocks, expected) << cluster;
  }
  dlclose(driver);
}

TEST_F(MadeUpGpu, fail_OtherTargets) {
  for (const auto& [capability, architecture, why] :
       {std::tuple{80, "sm_90a", "has compute capability 8.0, which cannot run `cuda:sm_90a`"},
        std::tuple{75, "", "asynchronous copies"}, std::tuple{120, "", "a target of its own"}}) {
    const auto kernel = backend(capability, architecture)->compile(parse(held_text(128)), warnings_);
    ASSERT_FALSE(kernel.ok());
    EXPECT_EQ(kernel.error().kind, DiagnosticKind::driver_missing);
    EXPECT_THAT(kernel.error().message, HasSubstr(why));
    EXPECT_TRUE(kernel.error().span.valid());
  }
}

TEST_F(MadeUpGpu, fail_WorkspacesBeyondItsMemory) {
  const auto kernel = backend(90)->compile(parse(R"(program p(A: float32[64]) {
  workspace w: float32[1099511627776]
  kernel bx in 1 threads 64 {
    copy A -> w[0 : 64]
    copy w[0 : 64] -> A
  }
})"),
                                           warnings_);
  ASSERT_TRUE(kernel.ok()) << render(kernel.error());
  std::vector<float> memory(72);
  float* aligned = memory.data();
  while (reinterpret_cast<uintptr_t>(aligned) % 16 != 0) ++aligned;
  const Status status = (*kernel)->launch({runtime::TensorView{aligned, ir::kFloat32, {64}, {1}}}, {}, Span{0, 0, 4});
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().kind, DiagnosticKind::out_of_memory);
  EXPECT_THAT(status.error().message, HasSubstr("the GPU has no 4398046511104 bytes"));
  EXPECT_TRUE(status.error().span.valid());
}

}  // namespace
}  // namespace tilepilot::testing
