// Programs of threads that keep a few elements each: what keeps their loads on the way together, and how few
// instructions their arithmetic is.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include "tests/cuda/interpreted.h"

namespace tilepilot::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

// The largest of the rows' elements, four columns a thread, as 8 bits. `body`: of the loop over rows.
std::string maxima(int rows, const std::string& type, const std::string& body, const std::string& to = "o[j]") {
  return fmt::format(R"(program maxima(x: float32[{0}, 512], out: {1}[512]) {{
  kernel bx in 1 threads t in 128 {{
    local a: float32[4]
    local o: {1}[8]
    shared s: float32[128]
    vectorized j in 8 {{ o[j] = {1}(0.0) }}
    vectorized j in 4 {{ a[j] = 0.0 }}
    serial i in {0} {{ {2} }}
    vectorized j in 4 {{ {3} = {1}(a[j]) }}
    vectorized j in 4 {{ out[t * 4 + j] = {3} }}
  }}
}})",
                     rows, type, body, to);
}
const std::string kLargest = "vectorized j in 4 { a[j] = max(a[j], x[i, t * 4 + j]) }";

TEST(ThreadPrograms, ConvertTwoElementsAtOnce) {
  for (const char* type : {"float8_e4m3fn", "float8_e5m2"}) {
    EXPECT_THAT(expect_interpreted(maxima(4, type, kLargest)), HasSubstr("narrow_pair(&o["));
    EXPECT_THAT(expect_interpreted(maxima(4, type, kLargest, "o[j + 2]")), HasSubstr("narrow_pair(&o["));
    // Two that are no aligned neighbours.
    EXPECT_THAT(expect_interpreted(maxima(4, type, kLargest, "o[j + 1]")), Not(HasSubstr("narrow_pair(&o[")));
  }
  EXPECT_THAT(expect_interpreted(maxima(4, "float16", kLargest)), Not(HasSubstr("narrow_pair")));
}

TEST(ThreadPrograms, ConvertPairsAsElements) {
  // Beyond the largest number, not a number, subnormal, of either sign.
  const std::string text = R"(program edges(x: float32[8], out: float8_e4m3fn[8]) {
  kernel bx in 1 threads t in 32 {
    local o: float8_e4m3fn[8]
    vectorized j in 8 { o[j] = float8_e4m3fn(x[j] / x[0] * exp2(float32(j * 7 - 24))) }
    if t == 0 { vectorized j in 8 { out[j] = o[j] } }
  }
})";
  EXPECT_THAT(expect_interpreted(text), HasSubstr("narrow_pair"));
}

TEST(ThreadPrograms, HaveTheLoadsOfAFewIterationsOnTheWayTogether) {
  const auto unrolled = HasSubstr("#pragma unroll\n  for (int32_t i = 0;");
  EXPECT_THAT(expect_interpreted(maxima(8, "float16", kLargest)), unrolled);
  EXPECT_THAT(expect_interpreted(maxima(32, "float16", kLargest)), Not(unrolled));  // more than registers hold
  EXPECT_THAT(expect_interpreted(maxima(8, "float16", "s[t] = a[0] sync " + kLargest)), Not(unrolled));
  EXPECT_THAT(expect_interpreted(maxima(8, "float16", "vectorized j in 4 { a[j] = max(a[j], float32(i + j)) }")),
              Not(unrolled));  // loads nothing
}

TEST(ThreadPrograms, MayUseTheRegistersThatHalfOfTheThreadsLeave) {
  EXPECT_THAT(expect_interpreted(maxima(8, "float16", kLargest)), HasSubstr("__launch_bounds__(128, 8)"));
  // Those that keep much save registers for more blocks.
  const std::string large = R"(program large(x: float32[128, 64], out: float32[128, 64]) {
  kernel bx in 1 threads 128 {
    fragment f: float32[128, 64]
    copy x[0 : 128, 0 : +64] -> f
    parallel i, j in 128, 64 { out[i, j] = f[i, j] + f[i, j] }
  }
})";
  EXPECT_THAT(expect_interpreted(large), HasSubstr("__launch_bounds__(128)"));
}

TEST(ThreadPrograms, KeepMaximaInBfloat16WithoutRounding) {
  const std::string text = R"(program largest(x: bfloat16[8, 128], out: bfloat16[128]) {
  kernel bx in 1 threads t in 128 {
    local a: bfloat16[1]
    a[0] = bfloat16(0.0)
    serial i in 8 { a[0] = max(a[0], abs(x[i, t])) }
    out[t] = a[0]
  }
})";
  EXPECT_THAT(expect_interpreted(text), AllOf(HasSubstr("exact_bfloat16(max_of"), Not(HasSubstr("to_bfloat16"))));
}

TEST(ThreadPrograms, KnowTheRangeOfThreadsInQuotients) {
  // (8 t + k) // 72 with t < 128 and k < 8
  const std::string text = R"(program scaled(x: float32[1024], s: float32[15], out: float32[1024]) {
  kernel bx in 1 threads t in 128 {
    vectorized k in 8 { out[t * 8 + k] = x[t * 8 + k] * s[(t * 8 + k) // 72] }
  }
})";
  EXPECT_THAT(expect_interpreted(text), AllOf(HasSubstr("s[t / 9]"), Not(HasSubstr("/ 72"))));
}

TEST(ThreadPrograms, KnowWhatANamedConditionSaysOfWhatWasComputedBefore) {
  // c < 128 where t < 128
  const std::string text = R"(program columns(x: float32[1024], out: float32[128]) {
  kernel bx in 1 threads t in 256 {
    shared s: float32[4, 256]
    local a: float32[1]
    parallel i, j in 4, 256 { s[i, j] = x[i * 256 + j] }
    a[0] = 0.0
    let c: int32 = t % 32 * 4 + t // 32
    if t < 128 {
      serial i in (256 - c // 4 + 31) // 32 { a[0] = max(a[0], s[c % 4, c // 4 + i * 32]) }
      out[c] = a[0]
    }
  }
})";
  EXPECT_THAT(expect_interpreted(text),
              AllOf(HasSubstr("i < 8;"), Not(HasSubstr("< 1024")), Not(HasSubstr("c < 128"))));
}

TEST(ThreadPrograms, ProveWhatAComparisonWithAQuotientSays) {
  const auto rows = [](const char* condition) {
    return fmt::format(R"(program rows<n: int32>(x: float32[n, 64], out: float32[n, 64]) {{
  kernel bx in (n + 127) // 128 threads 128 {{
    fragment f: float32[128, 64]
    if {} {{
      copy x[bx * 128 : +128, 0 : +64] -> f
      copy f -> out[bx * 128 : +128, 0 : +64]
    }}
  }}
}})",
                       condition);
  };
  const auto is_guarded = HasSubstr("< n)");
  EXPECT_THAT(expect_interpreted(rows("bx < (n + 127) // 128 - 1")), Not(is_guarded));
  EXPECT_THAT(expect_interpreted(rows("(n + 127) // 128 > bx + 1")), Not(is_guarded));
  EXPECT_THAT(expect_interpreted(rows("bx <= n // 128 - 1")), Not(is_guarded));
  EXPECT_THAT(expect_interpreted(rows("bx < (n + 127) // 128")), is_guarded);
  EXPECT_THAT(expect_interpreted(rows("bx <= n // 128")), is_guarded);
  EXPECT_THAT(expect_interpreted(rows("bx < (n + 128) // 128 - 1")), Not(is_guarded));
  EXPECT_THAT(expect_interpreted(rows("bx < (n + 255) // 128 - 1")), is_guarded);
}

TEST(ThreadPrograms, LoadGuardedElementsUnderAPredicate) {
  // Three elements further on, of which the last ones are outside of the tensor.
  const auto shifted = [](const char* type, const char* from) {
    return fmt::format(R"(program shifted(x: {0}[1000], out: {0}[1000]) {{
  kernel bx in 8 threads t in 125 {{
    local own: {0}[1]
    own[0] = {1}[bx * 125 + t + 3]
    out[bx * 125 + t] = own[0]
  }}
}})",
                       type, from);
  };
  for (const char* type : {"float32", "float16", "bfloat16", "float8_e4m3fn", "int8", "uint16", "int64"})
    EXPECT_THAT(expect_interpreted(shifted(type, "x")), HasSubstr("load_if(")) << type;
  EXPECT_THAT(expect_interpreted(shifted("bool", "x")), Not(HasSubstr("load_if(")));
  const std::string written = R"(program written(x: float32[8], out: float32[1000]) {
  kernel bx in 1 threads t in 125 {
    serial i in 8 { out[t] = out[t + i * 130] + x[i] }
  }
})";
  EXPECT_THAT(expect_interpreted(written), Not(HasSubstr("load_if(")));
}

TEST(ThreadPrograms, FillEveryStageBeforeTheLoop) {
  const std::string text = R"(program sums(x: float32[256, 64], out: float32[64]) {
  kernel bx in 1 threads 128 {
    shared t: float32[64, 64]
    fragment s: float32[64]
    fill s = 0.0
    pipelined k in 4 stages 2 {
      copy x[k * 64 : + 64, 0 : +64] -> t
      serial i in 64 { parallel j in 64 { s[j] = s[j] + t[i, j] } }
    }
    copy s -> out[0 : +64]
  }
})";
  const std::string source = expect_interpreted(text, {targets::gpu::Architecture::sm_90a});
  const size_t loop = source.find("for (int32_t k");
  ASSERT_NE(loop, std::string::npos);
  EXPECT_THAT(source.substr(0, loop), HasSubstr("full + 1"));
  EXPECT_THAT(source.substr(loop), HasSubstr("k > 0 && k < 3"));
}

}  // namespace
}  // namespace tilepilot::testing
