// What the candidate's process keeps of launches, for the judge.
#include "eval/worker/candidate/launches/recorded_launches.h"

#include <ATen/Functions.h>
#include <gmock/gmock.h>

#include "compiler/ir/text/text.h"

namespace tilepilot::eval {
namespace {

ir::Program copying() {
  SourceMap sources;
  DiagnosticList diagnostics;
  const int32_t file = sources.add("test.ir",
                                   "program p(a: float32[8], n: int32, b: float32[8]) {\n"
                                   "  kernel bx in 1 threads 32 {\n"
                                   "    parallel i in 8 { b[i] = a[i] }\n"
                                   "  }\n"
                                   "}\n");
  auto program = ir::read_text(sources, file, diagnostics);
  EXPECT_TRUE(program);
  return program ? *program : ir::Program{};
}

runtime::TensorView view_of(const at::Tensor& tensor) {
  return {tensor.data_ptr(), ir::kFloat32, tensor.sizes().vec(), tensor.strides().vec()};
}

class Recorded : public ::testing::Test {
 protected:
  void launch(const at::Tensor& written) {
    recorded_.add(program_, {view_of(at::zeros({8})), int64_t{3}, view_of(written)});
  }
  const ir::Program program_ = copying();
  RecordedLaunches recorded_{c10::DeviceType::CPU};
};

TEST_F(Recorded, AreCopiesOfWhatWasWritten) {
  at::Tensor written = at::arange(8).to(at::kFloat);
  launch(written);
  launch(at::arange(16).to(at::kFloat).slice(0, 0, c10::nullopt, 2));
  written.zero_();
  ASSERT_EQ(recorded_.all().size(), 2u);
  EXPECT_EQ(recorded_.all()[0].kernel, "p");
  ASSERT_EQ(recorded_.all()[0].written.size(), 1u) << "what is only read is not kept";
  EXPECT_TRUE(recorded_.all()[0].written[0].equal(at::arange(8).to(at::kFloat)));
  EXPECT_TRUE(recorded_.all()[1].written[0].equal(at::arange(8).mul(2).to(at::kFloat)));
  EXPECT_TRUE(recorded_.is_complete());
}

TEST_F(Recorded, EndWhereTheyAreTooMuch) {
  launch(at::ones({8}));
  launch(at::ones({1}).expand({RecordedLaunches::kMostBytes / 4}));
  EXPECT_FALSE(recorded_.is_complete());
  EXPECT_EQ(recorded_.all().size(), 1u);
  launch(at::ones({8}));
  EXPECT_EQ(recorded_.all().size(), 1u);
}

TEST_F(Recorded, EndAfterManyLaunches) {
  for (size_t i = 0; i < RecordedLaunches::kMostLaunches + 1; ++i) launch(at::ones({8}));
  EXPECT_FALSE(recorded_.is_complete());
  EXPECT_EQ(recorded_.all().size(), RecordedLaunches::kMostLaunches);
}

}  // namespace
}  // namespace tilepilot::eval
