// Variables of iterations, and updates that several iterations do to one element, in generated CUDA code: the emulator
// finds what the interpreter does, and nothing wrong.
#include <gmock/gmock.h>

#include "compiler/targets/cpu/supported.h"
#include "tests/cpu/kernel_fixture.h"
#include "tests/cuda/emulated.h"
#include "tests/cuda/interpreted.h"
#include "tests/ir/iteration_programs.h"

namespace tilepilot::testing {
namespace {

using targets::gpu::Architecture;

// The generated texts.
std::vector<std::string> expect_all(const std::vector<std::string>& texts, Architecture architecture) {
  EmulatedBatch batch(architecture);
  std::vector<ir::Program> programs;
  std::vector<std::string> sources;
  for (const std::string& text : texts) {
    programs.push_back(parse(text));
    const auto added = batch.add(programs.back());
    EXPECT_TRUE(added.ok()) << text << render(added.error());
    if (!added.ok()) return {};
  }
  batch.compile();
  for (size_t k = 0; k < texts.size(); ++k) {
    expect_agreement(batch, k, programs[k], texts[k] + batch.source(k));
    sources.push_back(batch.source(k));
  }
  return sources;
}

TEST(EmulatedIterations, HaveVariablesOfTheirOwn) {
  const auto sources = expect_all(ir::testing::programs_with_variables(), Architecture::sm_90a);
  using ::testing::HasSubstr;
  using ::testing::Not;
  ASSERT_FALSE(sources.empty());
  // One iteration of one thread, no word that threads share.
  EXPECT_THAT(sources[0],
              AllOf(Not(HasSubstr("shared_array")), Not(HasSubstr("sync_threads")), Not(HasSubstr("for ("))));
  EXPECT_THAT(sources[1], Not(HasSubstr("shared_array")));
}

TEST(EmulatedIterations, ThatHandAVariableOnRunInOrder) {
  expect_all(ir::testing::programs_with_sequences(), Architecture::sm_80);
}

TEST(EmulatedIterations, MayUpdateTheSameElement) {
  expect_all(ir::testing::programs_with_updates(), Architecture::sm_90a);
}

std::vector<std::string> warnings_of(const std::string& text) {
  const auto code = targets::cuda::generate(parse(text), Architecture::sm_80, {});
  std::vector<std::string> messages;
  EXPECT_TRUE(code.ok());
  if (code.ok())
    for (const Diagnostic& warning : code->warnings) messages.push_back(warning.message);
  return messages;
}

TEST(EmulatedIterations, ThatRunInOrderAreTold) {
  using ::testing::ElementsAre;
  EXPECT_THAT(warnings_of(ir::testing::programs_with_variables()[0]), ElementsAre());
  EXPECT_THAT(warnings_of(ir::testing::programs_with_sequences()[0]),
              ElementsAre("iterations of this parallel loop hand `v` on to the next one: they run one after another"));
  EXPECT_THAT(
      warnings_of(ir::testing::programs_with_sequences()[3]),
      ElementsAre("iterations of this parallel loop leave `v` for what follows the loop: they run one after another"));
  const auto update = [](const std::string& value) {
    return "program f(x: float32[64], y: float32[64]) {\n  kernel bx in 1 threads 64 {\n    parallel j in 64 {\n"
           "      y[j // 4] = " +
           value + "\n    }\n  }\n}";
  };
  EXPECT_THAT(warnings_of(update("y[j // 4] + x[j]")), ElementsAre());
  EXPECT_THAT(warnings_of(update("y[j // 4] * x[j]")),
              ElementsAre("iterations of this parallel loop may change the same element of `y`: they run one after "
                          "another"));
}

// A fragment whose element several threads update, each for itself, is no memory that they share.
TEST(EmulatedIterations, OfThreadsThatUpdateOneElementOfAFragmentAreRefused) {
  const auto program = [](const std::string& store) {
    return R"(program f(x: float32[64], y: float32[64]) {
  kernel bx in 1 threads tx in 64 {
    fragment a: float32[64]
    fragment r: float32[1]
    copy x -> a
    reduce sum a -> r axis 0
    )" + store +
           R"(
    parallel i in 64 {
      y[i] = a[i] + r[0]
    }
  }
})";
  };
  const auto error = [&](const std::string& store) -> std::string {
    const auto code = targets::cuda::generate(parse(program(store)), Architecture::sm_90a, {});
    return code.ok() ? "" : code.error().message;
  };
  const std::string refused =
      "each thread writes to the fragment `r`, whose elements tile operators spread over the threads";
  EXPECT_EQ(error("if tx < 32 {\nr[0] = r[0] + 1.0\n}"), refused);
  EXPECT_EQ(error("if tx < 32 {\nr[0] = x[tx]\n}"), refused);
  EXPECT_EQ(error("if x[tx] < 0.0 {\nr[0] = r[0] + 1.0\n}"), refused);
  EXPECT_EQ(error("atomic add r[0], x[tx]"), refused);
  EXPECT_EQ(error("atomic add r[0], 1.0"), refused);
  EXPECT_EQ(error("if tx < 32 {\natomic max r[0], 1.0\n}"), refused);
  // One thread, all threads alike, the same value.
  const std::vector<std::string> fine{"if tx == 5 {\nr[0] = r[0] + 1.0\n}", "r[0] = r[0] + 1.0",
                                      "if tx < 32 {\nr[0] = 2.0\n}", "if tx == 7 {\natomic add r[0], 1.0\n}"};
  std::vector<std::string> texts;
  for (const std::string& store : fine) texts.push_back(program(store));
  expect_all(texts, Architecture::sm_90a);
}

// Where a tile operator at most fills the fragment, it is of each thread's registers.
TEST(EmulatedIterations, OfThreadsThatUpdateAFilledFragmentAtomicallyChangeTheirOwn) {
  for (const char* update :
       {"atomic add r[0], x[tx]", "atomic add r[0], 1.0", "if tx < 32 {\natomic max r[1], x[tx]\n}",
        "atomic min r[tx % 2], 0.0", "atomic add r[0], x[tx] -> old: float32\ny[tx] = old"}) {
    const std::string text = fmt::format(R"(program f(x: float32[64], y: float32[64], z: float32[64]) {{
  kernel bx in 1 threads tx in 64 {{
    fragment r: float32[2]
    fill r = 0.5
    {}
    z[tx] = r[0] + r[1]
  }}
}})",
                                         update);
    for (const Architecture architecture : {Architecture::sm_80, Architecture::sm_90a})
      EXPECT_EQ(outcome(text, architecture).wrong, "") << text;
  }
}

// All threads contribute to a reducer, and read what all of them gave.
TEST(EmulatedIterations, OfThreadsThatContributeToAReducer) {
  for (const char* use : {"fill r = 0.5\natomic add r[0], x[tx]\nz[tx] = r[0] + r[1]",
                          "fill r = 0.5\natomic add r[tx % 2], x[tx]\nparallel i in 64 {\nz[i] = r[0] - r[1]\n}",
                          "fill r = 0.5\nif tx < 40 {\natomic max r[1], x[tx]\n}\ncopy r -> y[0:2]",
                          "fill r = 0.5\nserial i in 3 {\natomic min r[i % 2], x[tx] - 1.0\n}\ncopy r -> y[2:4]",
                          "fill r = 0.5\natomic add r[0], 1.0\nparallel i in 64 {\natomic add r[1], x[i]\n}\n"
                          "copy r -> y[4:6]"}) {
    const std::string text = fmt::format(R"(program f(x: float32[64], y: float32[64], z: float32[64]) {{
  kernel bx in 1 threads tx in 64 {{
    fragment r: float32[2] reducer
    {}
  }}
}})",
                                         use);
    for (const Architecture architecture : {Architecture::sm_80, Architecture::sm_90a})
      EXPECT_EQ(outcome(text, architecture).wrong, "") << text;
  }
}

// Two tiles of which the second one takes the place of the first, in a kernel whose threads exchange values of a warp
// between them, and no more.
TEST(EmulatedIterations, OfThreadsOnTilesInOnePlaceMeetBetweenThem) {
  expect_all({R"(program f(x: float32[64], y: float32[64], z: float32[64]) {
  kernel bx in 1 threads tx in 64 {
    shared s: float32[64]
    shared t: float32[64]
    copy x -> s
    let mine: float32 = s[63 - tx]
    shuffle xor (mine, 1) over 32 -> other: float32
    t[tx] = other
    sync
    y[tx] = t[tx ^ 1]
    z[tx] = t[63 - tx]
  }
})"},
             Architecture::sm_80);
}

// Of tensors whose elements are counted in 32 bits, too: values of 64 bits stay what they are.
TEST(EmulatedIterations, OfWideIntegersKeepTheirValues) {
  const std::string source = expect_interpreted(R"(program wide(l: int64[7], n: int32[7], m: int32[7], c: int32[7]) {
  kernel bx in 7 threads 128 {
    fragment held: int32[128]
    let e: int64 = int64(bx) * 1000000007
    let times: int32 = int32(int64(bx) * 1000000007 % 3)
    fill held = 0
    serial k in times {
      parallel i in 128 {
        held[i] = held[i] + k + 1
      }
    }
    parallel i in 7 {
      if i == bx {
        l[i] = e
        n[i] = int32(e % 7)
        m[i] = held[i] + int32(min(e, 3000000000) // 1000)
        c[i] = select(e > 4000000000, 2, 1)
      }
    }
  }
})");
  EXPECT_THAT(source, ::testing::HasSubstr("const int64_t e = "));
}

// The emulator's own functions are exact; NVRTC compiles the machine's. The processor has none, and says so.
TEST(EmulatedIterations, MayUseFastFunctions) {
  const std::string text = R"(program fast(x: float32[128], h: float16[128], y: float32[12, 128]) {
  kernel bx in 1 threads 128 fast_math {
    parallel i in 128 {
      y[0, i] = exp(x[i]) + exp2(x[i]) + exp10(x[i])
      y[1, i] = log(abs(x[i]) + 1.0) + log2(abs(x[i]) + 1.0) + log10(abs(x[i]) + 1.0)
      y[2, i] = sqrt(abs(x[i])) + rsqrt(abs(x[i]) + 1.0)
      y[3, i] = sin(x[i]) + cos(x[i]) + tan(x[i])
      y[4, i] = tanh(x[i]) + sigmoid(x[i])
      y[5, i] = pow(abs(x[i]) + 0.5, x[i])
      y[6, i] = x[i] / (abs(x[i]) + 3.0)
      y[7, i] = float32(exp(h[i]) / (abs(h[i]) + float16(2.0)))
    }
  }
})";
  const std::string source = expect_interpreted(text);
  DiagnosticList warnings;
  targets::cpu::announce_ignored(parse(text), warnings);
  ASSERT_EQ(warnings.items().size(), 1u);
  EXPECT_EQ(warnings.items()[0].message, "`TL_ENABLE_FAST_MATH` has no effect on this target");
  for (const char* name : {"fast_exp_of(", "fast_exp2_of(", "fast_exp10_of(", "fast_log_of(", "fast_log2_of(",
                           "fast_log10_of(", "fast_sqrt_of(", "fast_rsqrt_of(", "fast_sin_of(", "fast_cos_of(",
                           "fast_tan_of(", "fast_tanh_of(", "fast_sigmoid_of(", "fast_pow_of(", "fast_quotient("})
    EXPECT_THAT(source, ::testing::HasSubstr(name));
}

}  // namespace
}  // namespace tilepilot::testing
