// What `tilepilot compile` shows of a program on a GPU: layouts, code, machine code, and why it is as it is.
#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>

#include "compiler/driver/emit.h"
#include "compiler/runtime/cuda/disassemble.h"
#include "compiler/targets/cuda/codegen.h"
#include "compiler/targets/cuda/prelude.h"
#include "tests/cuda/nvrtc_fixture.h"

namespace tilepilot::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

// A kernel of A: (256, 256) float16, N: (256, 12) float16 and C: (256, 256) float32.
driver::CompileRequest request_for(const std::string& body, const std::string& target) {
  driver::CompileRequest request;
  request.name = "kernel.py";
  request.text =
      "import tilelang.language as T\n\n@T.prim_func\ndef main(A: T.Tensor((256, 256), 'float16'), "
      "N: T.Tensor((256, 12), 'float16'), C: T.Tensor((256, 256), 'float32')):\n    with T.Kernel(1, threads=128):\n";
  for (size_t at = 0; at < body.size();) {
    const size_t end = std::min(body.find('\n', at), body.size());
    request.text += "        " + body.substr(at, end - at) + "\n";
    at = end + 1;
  }
  request.target = target;
  request.cuda_folders = nvrtc_options().folders;
  return request;
}

driver::Emission emission_of(const std::string& body, const std::string& what, const std::string& target) {
  SourceMap sources;
  return driver::emit(sources, request_for(body, target), what);
}

std::string emitted(const std::string& body, const std::string& what, const std::string& target) {
  const driver::Emission emission = emission_of(body, what, target);
  return emission.text ? *emission.text : emission.diagnostics.items()[0].message;
}

constexpr const char* kCopies = R"(tile = T.alloc_fragment((64, 64), "float16")
T.copy(A[0:64, 0:64], tile)
T.copy(tile, A[64:128, 0:64]))";

TEST(EmissionForGpus, ShowsLayoutsAndCode) {
  EXPECT_THAT(emitted(kCopies, "layouts", "cuda:sm_80"), HasSubstr("fragment tile: "));
  EXPECT_THAT(emitted(kCopies, "source", "cuda:sm_80"), HasSubstr("copy_vector<16>"));
  EXPECT_THAT(emitted(kCopies, "ir:lowered", "cuda:sm_90a"), HasSubstr("local tile: float16[32]"));
  for (const char* what : {"layouts", "asm"})
    EXPECT_THAT(emitted(kCopies, what, "cpu"), HasSubstr("about targets with a GPU"));
  EXPECT_THAT(emitted("for j in T.Parallel(64):\n    A[0, j] = A[1, j] * 2.0", "explain", "cpu"), HasSubstr("vectors"));
}

// Foreign functions are called for their effects, whatever they give, and know the names that hosts' headers give.
TEST(EmissionForGpus, CallsForeignFunctions) {
  const std::string body =
      R"(T.import_source("__device__ void twice(float* x, int count) { for (uint i = 0; i < count; ++i) x[i] *= 2; }")
part = T.alloc_local((4,), "float32")
for i in T.serial(4):
    part[i] = i
T.call_extern("twice", T.access_ptr(part, "rw"), 4, dtype="float32")
for i in T.serial(4):
    C[0, i] = part[i])";
  const std::string text = emitted(body, "source", "cuda:sm_80");
  EXPECT_THAT(text, AllOf(HasSubstr("  twice(&part[0], 4);"), Not(HasSubstr("= twice("))));
  SKIP_WITHOUT_NVRTC();
  EXPECT_THAT(emitted(body, "asm", "cuda:sm_80"), HasSubstr(".entry main_"));
}

// Asked for by the decorator, by `tilelang.compile`, and within the kernel; by its key and by the device compiler's
// flag.
TEST(EmissionForGpus, ComputesFastWhereThatIsAskedFor) {
  const auto source_of = [](const std::string& decorator, const std::string& hint, const std::string& call,
                            const std::string& target, std::vector<std::string>* warnings = nullptr) {
    driver::CompileRequest request;
    request.name = "kernel.py";
    request.text =
        "import tilelang\nimport tilelang.language as T\n\n" + decorator +
        "\ndef softer(N=128):\n    @T.prim_func\n    def main(A: T.Tensor((N,), 'float32')):\n"
        "        with T.Kernel(1, threads=128):\n            " +
        hint + "\n            for i in T.Parallel(N):\n                A[i] = T.exp(A[i]) / A[i]\n    return main\n";
    request.target = target;
    request.call = call;
    SourceMap sources;
    const driver::Emission emission = driver::emit(sources, request, "source");
    for (const Diagnostic& one : emission.diagnostics.items())
      if (warnings) warnings->push_back(one.message);
    return emission.text.value_or("");
  };
  const auto fast = AllOf(HasSubstr("fast_exp_of("), HasSubstr("fast_quotient("));
  const auto exact = AllOf(HasSubstr("exp_of("), Not(HasSubstr("fast_")));
  const std::string key = "pass_configs={tilelang.PassConfigKey.TL_ENABLE_FAST_MATH: True}", gpu = "cuda:sm_90a";
  std::vector<std::string> warnings;
  EXPECT_THAT(source_of("@tilelang.jit(" + key + ")", "pass", "softer()", gpu, &warnings), fast);
  EXPECT_THAT(source_of("@tilelang.jit(" + key + ")", "pass", "", gpu, &warnings), fast);
  EXPECT_THAT(source_of("@tilelang.jit(pass_configs={'tl.enable_fast_math': True})", "pass", "", gpu, &warnings), fast);
  EXPECT_THAT(source_of("", "T.annotate_pass_configs({'tl.enable_fast_math': True})", "softer()", gpu, &warnings),
              fast);
  EXPECT_THAT(source_of("", "T.annotate_compile_flags('--use_fast_math')", "softer()", gpu, &warnings), fast);
  EXPECT_THAT(source_of("", "pass", "tilelang.compile(softer(), " + key + ")", gpu, &warnings), fast);
  EXPECT_THAT(warnings, ElementsAre());
  EXPECT_THAT(source_of("@tilelang.jit(compile_flags=['-O3', '--use_fast_math'])", "pass", "", gpu, &warnings), fast);
  EXPECT_THAT(warnings, ElementsAre("the flag `-O3` has no effect on this target"));
  EXPECT_THAT(source_of("@tilelang.jit(pass_configs={'tl.enable_fast_math': False})", "pass", "", gpu), exact);
  EXPECT_THAT(source_of("@tilelang.jit", "pass", "", gpu), exact);
  EXPECT_THAT(source_of("@tilelang.jit(" + key + ")", "pass", "", "cpu"), Not(HasSubstr("fast_")));
}

// A type for memory and GEMMs, in which nothing is computed: no rounding but where float32 is stored.
TEST(EmissionForGpus, ComputesWithTensorFloatsAsFloat32) {
  const std::string text = emitted(R"(held = T.alloc_fragment((64, 64), "tfloat32")
T.copy(A[0:64, 0:64], held)
for i, j in T.Parallel(64, 64):
    C[i, j] = held[i, j] * held[i, j] + 1)",
                                   "source", "cuda:sm_90a");
  EXPECT_THAT(text, AllOf(HasSubstr("exact_tfloat32("), Not(HasSubstr("round_tfloat32("))));
}

constexpr const char* kProduct = R"(a = T.alloc_shared((64, 32), "float16")
b = T.alloc_shared((32, 64), "float16")
c = T.alloc_fragment((64, 64), "float32")
T.clear(c)
for k in T.Pipelined(8, num_stages=3):
    T.copy(A[0, k * 32], a)
    T.copy(A[k * 32, 0], b)
    T.gemm(a, b, c)
T.copy(c, C[0:64, 0:64]))";

TEST(EmissionForGpus, DrawsLayouts) {
  const driver::Emission emission = emission_of(kProduct, "layouts", "cuda:sm_80");
  ASSERT_TRUE(emission.text);
  std::vector<std::string> names;
  for (const auto& [name, svg] : emission.files) {
    names.push_back(name);
    EXPECT_THAT(svg, AllOf(HasSubstr("<svg"), HasSubstr("</svg>"))) << name;
  }
  EXPECT_THAT(names, ElementsAre("main_0_a.svg", "main_0_b.svg", "main_0_c.svg"));
}

struct Explained {
  std::string name, target, body;
  std::vector<std::string> lines;
};
const std::vector<Explained>& explained() {
  static const std::vector<Explained> all{
      {"engine",
       "cuda:sm_90a",
       kProduct,
       {"kernel.py:11:13: copy A -> a: by TMA, 2 iterations ahead",
        "kernel.py:13:13: gemm into c: wgmma m64n64k16, A from shared memory, warpgroups 1 x 1"}},
      {"threads",
       "cuda:sm_80",
       kProduct,
       {"copy A -> a: by the threads, 2 iterations ahead\n    not TMA: sm_80 has none",
        "copy A -> a: cp.async of 16 bytes", "gemm into c: mma m16n8k16, warps 2 x 2",
        "operand a of the GEMM: ldmatrix"}},
      {"narrow_rows",
       "cuda:sm_90a",
       R"(n = T.alloc_shared((32, 12), "float16")
for k in T.Pipelined(8, num_stages=2):
    T.copy(N[k * 32, 0], n)
    for i, j in T.Parallel(32, 12):
        C[k * 32 + i, j] = n[i, j])",
       {"not TMA: rows of 24 bytes are no multiple of 32", "copy N -> n: by the threads, 1 iteration ahead",
        "copy N -> n: cp.async of 8 bytes\n    no wider: each thread has 4 neighbours of the loop"}},
      {"not_ahead",
       "cuda:sm_90a",
       R"(n = T.alloc_shared((32, 32), "float16")
T.clear(n)
for k in T.Pipelined(8, num_stages=2):
    for i, j in T.Parallel(32, 32):
        C[k * 32 + i, j] = n[i, j]
    T.copy(A[k * 32, 0], n))",
       {"copy A -> n: within its iteration\n    not ahead: `n` is used outside the loop"}},
      {"read_before",
       "cuda:sm_90a",
       R"(n = T.alloc_shared((32, 32), "float16")
for k in T.Pipelined(8, num_stages=2):
    T.copy(A[k * 32, 0], n)
    for i, j in T.Parallel(32, 32):
        C[k * 32 + i, j] = n[i, j]
    T.copy(A[k * 32, 32], n))",
       {"not ahead: the loop writes `n` elsewhere, too"}},
      {"few_threads",
       "cuda:sm_80",
       R"(a = T.alloc_shared((24, 32), "float16")
c = T.alloc_fragment((24, 24), "float32")
T.copy(A[0:24, 0:32], a)
T.gemm(a, a, c, transpose_B=True, clear_accum=True)
T.copy(c, C[0:24, 0:24]))",
       {"gemm into c: multiply-adds\n    no tensor cores: 24 x 24 x 32 is no multiple of 16 x 8 x 16"}},
      {"by_warps",
       "cuda:sm_90a",
       R"(a = T.alloc_shared((16, 32), "float16")
c = T.alloc_fragment((16, 32), "float32")
b = T.alloc_shared((32, 32), "float16")
T.copy(A[0:16, 0:32], a)
T.copy(A[0:32, 0:32], b)
T.gemm(a, b, c, clear_accum=True)
T.copy(c, C[0:16, 0:32]))",
       {"gemm into c: mma m16n8k16, warps 1 x 4\n    not wgmma: 16 x 32 is no multiple of 64 x 16"}},
      {"unaligned_start",
       "cuda:sm_80",
       R"(f = T.alloc_fragment((32, 32), "float16")
for k in T.serial(3):
    T.copy(A[0:32, k:k + 32], f)
    T.copy(f, A[64:96, 0:32]))",
       {"copy A -> f: element by element\n    no wider: it may start at no multiple of 8 elements of `A`"}},
      {"known_unaligned_start",
       "cuda:sm_80",
       R"(f = T.alloc_fragment((32, 32), "float16")
T.copy(A[0:32, 1:33], f)
T.copy(f, A[64:96, 0:32]))",
       {"copy A -> f: A by 16 bytes\n"}},
      {"stores",
       "cuda:sm_90a",
       R"(n = T.alloc_shared((32, 12), "float16")
T.copy(N[0:32, 0:12], n)
T.copy(n, N[64:96, 0:12]))",
       {"copy n -> N: by the threads\n    not TMA: rows of 24 bytes are no multiple of 32"}},
      {"at_once",
       "cuda:sm_90a",
       R"(n = T.alloc_shared((64, 32), "float16")
f = T.alloc_fragment((64, 32), "float16")
T.copy(A[0:64, 0:32], n)
T.copy(n, f)
T.copy(f, C[64:128, 0:32]))",
       {"copy A -> n: A by 16 bytes, n by 16 bytes\n    not TMA: it does not run ahead in a pipelined loop",
        "copy f -> C: C by 16 bytes\n    not TMA: `f` is in registers"}},
      {"odd_rows",  // no whole number of rows for a warp
       "cuda:sm_80",
       R"(n = T.alloc_shared((64, 48), "float16")
T.copy(A[0:64, 0:48], n)
T.copy(n, A[64:128, 0:48]))",
       {"copy A -> n: A by 16 bytes, n by 16 bytes", "copy n -> A: n by 16 bytes, A by 16 bytes"}},
      {"odd_rows_ahead",
       "cuda:sm_80",
       R"(n = T.alloc_shared((64, 24), "float16")
f = T.alloc_fragment((64, 24), "float16")
for k in T.Pipelined(2, num_stages=2):
    T.copy(A[0:64, k * 24:k * 24 + 24], n)
    T.copy(n, f)
    T.copy(f, C[64:128, k * 24:k * 24 + 24]))",
       {"copy A -> n: cp.async of 16 bytes"}},
      {"reductions",
       "cuda:sm_80",
       R"(f = T.alloc_fragment((4, 256), "float16")
r = T.alloc_fragment((4,), "float16")
T.copy(A[0:4, :], f)
T.reduce_max(f, r, dim=1)
T.copy(r, A[4, 0:4]))",
       {"reduce f -> r: shuffles among 32 lanes"}},
      {"staged",
       "cuda:sm_80",
       R"(a = T.alloc_shared((64, 32), "float16")
b = T.alloc_shared((32, 64), "float16")
c = T.alloc_fragment((64, 64), "float32")
T.copy(A[0:64, 0:32], a)
T.copy(A[0:32, 0:64], b)
T.gemm(a, b, c, clear_accum=True)
for i, j in T.Parallel(64, 64):
    C[i, j] = c[i, j] + c[j, i])",
       {"kernel.py:12:9: note: `c` goes through shared memory: other threads hold the elements that a thread needs"}},
  };
  return all;
}

TEST(EmissionForGpus, ExplainsWhatWasChosen) {
  for (const Explained& e : explained()) {
    const std::string text = emitted(e.body, "explain", e.target);
    for (const std::string& line : e.lines) EXPECT_THAT(text, HasSubstr(line)) << e.name;
  }
}

TEST(EmissionForGpus, ShowsVirtualMachineCode) {
  SKIP_WITHOUT_NVRTC();
  const std::string text = emitted(kProduct, "asm", "cuda:sm_90a");
  EXPECT_THAT(text, AllOf(HasSubstr(".target sm_90a"), HasSubstr("wgmma.mma_async"), HasSubstr("kernel.py")));
}

// Profilers and sanitizers find lines of the tile program in the machine code.
TEST(EmissionForGpus, MachineCodeNamesLines) {
  SKIP_WITHOUT_NVRTC();
  SourceMap sources;
  const driver::CompileResult compiled = driver::compile(sources, request_for(kProduct, "cuda:sm_80"));
  const auto code = targets::cuda::generate(compiled.programs.at(0), targets::gpu::Architecture::sm_80, {&sources});
  ASSERT_TRUE(code.ok()) << code.error().message;
  EXPECT_THAT(code->source, HasSubstr("#line 13 \"kernel.py\""));
  DiagnosticList warnings;
  const auto made = nvrtc().compile(targets::cuda::prelude() + code->source, "sm_80", warnings);
  ASSERT_TRUE(made.ok()) << made.error().message;
  EXPECT_THAT(made->cubin, AllOf(HasSubstr(".debug_line"), HasSubstr("kernel.py")));
}

class Disassembler : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "tilepilot-tools-XXXXXX").string();
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    folder_ = name;
    fs::create_directories(folder_ / "bin");
  }
  void TearDown() override { fs::remove_all(folder_); }

  void tool(const std::string& name, const std::string& script) const {
    std::ofstream(folder_ / "bin" / name) << "#!/bin/sh\n" << script << "\n";
    fs::permissions(folder_ / "bin" / name, fs::perms::owner_all);
  }
  Result<std::string> run() const { return runtime::cuda::disassembled("machine code", {folder_}); }

  fs::path folder_;
};

TEST_F(Disassembler, ShowsMachineCode) {
  tool("cuobjdump", "echo \"$1\"; cat \"$2\"");
  tool("nvdisasm", "echo \"$1\"; cat \"$2\"");
  const auto text = run();
  ASSERT_TRUE(text.ok()) << text.error().message;
  EXPECT_EQ(*text, "--print-code\nmachine code");
}

TEST_F(Disassembler, TakesTheOtherToolWhereOneFails) {
  tool("nvdisasm", "exit 1");
  tool("cuobjdump", "echo \"$1\"");
  EXPECT_EQ(*run(), "--dump-sass\n");
}

TEST_F(Disassembler, fail_NoTool) {
  const char* path = std::getenv("PATH");
  const std::string before = path ? path : "";
  ::setenv("PATH", (folder_ / "none").c_str(), 1);
  const auto text = run();
  ::setenv("PATH", before.c_str(), 1);
  ASSERT_FALSE(text.ok());
  EXPECT_EQ(text.error().kind, DiagnosticKind::not_installed);
  EXPECT_THAT(text.error().message, HasSubstr("neither `nvdisasm` nor `cuobjdump`"));
}

}  // namespace
}  // namespace tilepilot::testing
