// Reported programs as generated CUDA code in the emulator, with all of its checks: the right numbers, and no race,
// deadlock, stray access or read of what has no value.
#include "tests/cuda/emulated.h"
#include "tests/reports/reports.h"
#include "tests/tile/run_fixture.h"

namespace tilepilot::stage {
namespace {

using targets::gpu::Architecture;

// The launch that a call of the program asks for, instead of the launch.
class RecordedLaunch final : public runtime::CompiledKernel {
 public:
  explicit RecordedLaunch(ir::Program program) : program_(std::move(program)) {}
  Status launch(const std::vector<runtime::Argument>& arguments, const runtime::ParallelFor&, Span) override {
    EXPECT_TRUE(this->arguments.empty()) << "one launch a report";
    this->arguments = arguments;
    return {};
  }
  const ir::Program& program() const override { return program_; }
  const std::string& source() const override { return source_; }

  std::vector<runtime::Argument> arguments;

 private:
  ir::Program program_;
  std::string source_;
};

class Recorder final : public runtime::KernelBackend {
 public:
  Result<std::shared_ptr<runtime::CompiledKernel>> compile(const ir::Program& program, DiagnosticList&) override {
    last = std::make_shared<RecordedLaunch>(program);
    return std::shared_ptr<runtime::CompiledKernel>(last);
  }
  std::shared_ptr<RecordedLaunch> last;
};

class StagedReport : private LoadedModule {
 public:
  StagedReport(const Report& report, Recorder& recorder) : LoadedModule(recorder), report_(report) {
    load(report.program);
    if (::testing::Test::HasFatalFailure()) return;
    result_ = call(report.call(), report.inputs);
    launch_ = recorder.last;
  }
  const Report& report() const { return report_; }
  const RecordedLaunch& launch() const { return *launch_; }
  void expect_result() const {
    expect_near(result_, report_.tolerance, [&](int64_t i) { return report_.expected(report_.inputs, i); });
  }

 private:
  const Report report_;
  std::shared_ptr<RecordedLaunch> launch_;
  Array result_;
};

using Group = std::pair<const char*, std::vector<Report> (*)()>;
using Case = std::tuple<Group, std::pair<Architecture, const char*>>;
class ReportedOnGpus : public ::testing::TestWithParam<Case> {};

TEST_P(ReportedOnGpus, GiveTheRightNumbers) {
  const auto& [group, target] = GetParam();
  testing::EmulatedBatch batch(target.first);
  Recorder recorder;
  std::vector<std::unique_ptr<StagedReport>> staged;
  for (const Report& report : group.second()) {
    SCOPED_TRACE(report.name + " " + std::to_string(report.thread));
    auto stage = std::make_unique<StagedReport>(report, recorder);
    if (HasFatalFailure()) return;
    const auto added = batch.add(stage->launch().program());
    ASSERT_TRUE(added.ok()) << added.error().message;
    staged.push_back(std::move(stage));
  }
  batch.compile();
  if (HasFatalFailure()) return;
  for (size_t k = 0; k < staged.size(); ++k) {
    SCOPED_TRACE(staged[k]->report().name + " " + std::to_string(staged[k]->report().thread));
    const std::string wrong = batch.run(k, staged[k]->launch().arguments);
    EXPECT_EQ(wrong, "") << batch.source(k);
    if (wrong.empty()) staged[k]->expect_result();
  }
}

INSTANTIATE_TEST_SUITE_P(
    Threads, ReportedOnGpus,
    ::testing::Combine(::testing::Values(Group("copies", reports_of_copies), Group("operators", reports_of_operators),
                                         Group("order", reports_of_order), Group("pipelines", reports_of_pipelines),
                                         Group("threads", reports_of_threads), Group("values", reports_of_values)),
                       ::testing::Values(std::pair(Architecture::sm_80, "sm_80"),
                                         std::pair(Architecture::sm_90a, "sm_90a"))),
    [](const auto& info) { return std::string(std::get<0>(info.param).first) + "_" + std::get<1>(info.param).second; });

}  // namespace
}  // namespace tilepilot::stage
