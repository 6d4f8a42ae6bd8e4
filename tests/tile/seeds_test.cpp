// The factories of the seeds, staged with sizes that leave edge tiles: each gives a program that keeps the IR's rules.
#include "compiler/diagnostics/render.h"
#include "compiler/driver/compile.h"
#include "compiler/ir/text/text.h"
#include "compiler/ir/verify/verify.h"
#include "tests/golden.h"

namespace tilepilot::stage {
namespace {

struct SeedCall {
  const char* seed;
  const char* call;
};
constexpr SeedCall kCalls[] = {
    {"attention", "attention(8, 500, 64)"},
    {"bias_gelu", "bias_gelu(100, 256)"},
    {"cosine_similarity", "cosine_similarity(4099, 128)"},
    {"cross_entropy", "row_losses(37, 1000)"},
    {"depthwise_conv", "depthwise(2, 3, 17, 21)"},
    {"gated_recurrence", "recurrence(2, 9, 100, 4)"},
    {"group_norm_swish", "group_norm_swish(2, 8, 4, 64, 1e-5)"},
    {"layer_norm_residual", "add_layer_norm(33, 96, 1e-5)"},
    {"linear_bias_relu", "linear_relu(200, 300, 400)"},
    {"linear_sum", "column_sums(100, 200)"},
    {"linear_sum", "matvec_add(100, 200)"},
    {"rms_norm", "rms_norm(33, 96, 1e-6)"},
    {"softmax_rows", "softmax(33, 96)"},
    {"stencil_steps", "diffuse(2, 40, 33, 3, 0.2)"},
    {"strided_mean", "mean_over_rows(3, 100, 300)"},
    {"swiglu", "swiglu(33, 96)"},
};

TEST(Seeds, FactoriesStageValidPrograms) {
  for (const SeedCall& row : kCalls) {
    SCOPED_TRACE(row.call);
    std::filesystem::path path =
        std::filesystem::path(TILEPILOT_SOURCE_DIR) / "seeds" / (std::string(row.seed) + ".py");
    SourceMap sources;
    driver::CompileResult result =
        driver::compile(sources, {path.filename().string(), testing::read_text(path), row.call});
    ASSERT_TRUE(result.diagnostics.items().empty()) << render(sources, result.diagnostics);
    ASSERT_EQ(result.programs.size(), 1u);
    DiagnosticList violations;
    EXPECT_TRUE(ir::verify(result.programs[0], violations)) << render(sources, violations);
  }
}

TEST(Seeds, EachIsStaged) {
  for (const auto& entry : std::filesystem::directory_iterator(std::filesystem::path(TILEPILOT_SOURCE_DIR) / "seeds")) {
    if (entry.path().extension() != ".py") continue;
    std::string stem = entry.path().stem().string();
    EXPECT_TRUE(
        std::any_of(std::begin(kCalls), std::end(kCalls), [&](const SeedCall& row) { return row.seed == stem; }))
        << "no call stages the seed " << stem;
  }
}

}  // namespace
}  // namespace tilepilot::stage
