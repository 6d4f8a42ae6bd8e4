// Profiles: what records of calls come to, JSON there and back, and the words for people.
#include "eval/profile/profile.h"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "eval/profile/profile_record.h"
#include "eval/profile/profile_text.h"
#include "tests/golden.h"

namespace tilepilot::eval {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

ProfiledMachine h200() { return profiled_gpu("NVIDIA H200"); }

PartRecord kernel_part(std::string name, int line, std::vector<double> seconds) {
  PartRecord part{std::move(name), 0, line, std::move(seconds)};
  part.work = {6e6, 12e6, 4e9, 1e6, 0, "float16", true};
  return part;
}

// Four calls: a kernel that is launched twice in each, one that spills, an operator.
CallsRecord recorded() {
  CallsRecord record{"events", {100e-6, 100e-6, 100e-6, 100e-6}, {}};
  record.parts.push_back({"aten::softmax", -1, 31, {9e-6, 10e-6, 11e-6, 10e-6}});
  record.parts.push_back(kernel_part("matmul", 12, std::vector<double>(8, 30e-6)));
  record.parts.push_back(kernel_part("scale", 20, std::vector<double>(4, 12e-6)));
  GpuUse gpu;
  gpu.registers = 168;
  gpu.dynamic_shared = 65536;
  gpu.grid = {8, 4, 1};
  gpu.threads = {128, 1, 1};
  gpu.resident_blocks = 3;
  gpu.multiprocessors = 132;
  gpu.occupancy = 0.1875;
  record.parts[1].gpu = gpu;
  record.parts[1].instructions = {"wgmma", "TMA"};
  record.parts[1].choices = {{14, "copy A -> a", "TMA", {}},
                             {16, "copy c -> C", "vectors of 16 bytes", {"not stmatrix: elements of 32 bits"}}};
  gpu.spilled_bytes = 40;
  gpu.grid = {1024, 1, 1};
  record.parts[2].gpu = gpu;
  record.parts[2].work = {96e6, 96e6, 0, 8e6, 1e6, "", true};
  return record;
}

TEST(Profiles, AddUpToACall) {
  const Profile profile = profile_of(recorded(), h200(), "cuda:sm_90a", std::nullopt);
  ASSERT_EQ(profile.kernels.size(), 2u);
  ASSERT_EQ(profile.operators.size(), 1u);
  EXPECT_EQ(profile.kernels[0].name, "matmul") << "the dearest first";
  EXPECT_DOUBLE_EQ(profile.kernels[0].launches, 2);
  EXPECT_NEAR(profile.kernels[0].us, 60, 1e-9);
  EXPECT_NEAR(profile.kernels[0].share, 0.6, 1e-9);
  EXPECT_NEAR(profile.operators[0].us, 10, 1e-9);
  EXPECT_NEAR(profile.host_us, 18, 1e-9);
  double shares = profile.host_share;
  for (const KernelProfile& kernel : profile.kernels) shares += kernel.share;
  for (const OperatorProfile& each : profile.operators) shares += each.share;
  EXPECT_NEAR(shares, 1, 1e-9);
}

// On a GPU, calls that nobody watched are longer where launching takes longer than the work.
TEST(Profiles, TakeTheTimeOfAnUnwatchedCall) {
  const Profile longer = profile_of(recorded(), h200(), "cuda:sm_90a", Timing{164, 160, 168, 30});
  EXPECT_NEAR(longer.host_us, 82, 1e-9);
  EXPECT_NEAR(longer.kernels[0].share, 60.0 / 164, 1e-9);
  // Marks cost a little: parts are never more than the whole.
  const Profile shorter = profile_of(recorded(), h200(), "cuda:sm_90a", Timing{70, 69, 71, 30});
  EXPECT_NEAR(shorter.host_us, 0, 1e-9);
  EXPECT_NEAR(shorter.kernels[0].share, 60.0 / 82, 1e-9);
}

TEST(Profiles, HoldKernelsAgainstTheRoofline) {
  const KernelWork products{6e6, 12e6, 989e6, 0, 0, "float16", true};
  EXPECT_NEAR(launch_roofline(products, h200()).us, 1.25, 1e-9) << "6 MB at 4.8 TB/s";
  EXPECT_EQ(launch_roofline(products, h200()).bound, "memory");
  const KernelWork more{6e6, 12e6, 98.9e9, 0, 0, "float16", true};
  EXPECT_NEAR(launch_roofline(more, h200()).us, 100, 1e-9);
  EXPECT_EQ(launch_roofline(more, h200()).bound, "compute");
  KernelWork single = more;
  single.product_type = "float32";
  EXPECT_GT(launch_roofline(single, h200()).us, 190);
  EXPECT_EQ(launch_roofline(more, profiled_gpu("another GPU")).us, 0) << "nobody knows its rates";
  EXPECT_EQ(launch_roofline(more, profiled_gpu("another GPU")).bound, "");
}

TEST(Profiles, ComeBackFromJson) {
  Profile profile = profile_of(recorded(), h200(), "cuda:sm_90a", std::nullopt);
  profile.eager = side_profile_of(recorded(), Timing{200, 190, 210, 30});
  profile.kernels[0].metrics = {{"dram__throughput.avg.pct_of_peak_sustained_elapsed", 61.5}};
  profile.kernels[1].cpu = CpuUse{64, 2, {14, 15}};
  profile.notes = {"a note"};
  const json node = to_json(profile);
  EXPECT_EQ(to_json(profile_from_json(json::parse(node.dump()))), node);
  EXPECT_EQ(node["kernels"][0]["gpu"]["registers"], 168);
  EXPECT_EQ(node["kernels"][0]["choices"][1]["obstacles"][0], "not stmatrix: elements of 32 bits");
  EXPECT_EQ(node["eager"]["call"]["median_us"], 200);
}

TEST(Profiles, StandInVerdicts) {
  Verdict verdict;
  verdict.outcome = Outcome::verified;
  EXPECT_FALSE(verdict_from_json(to_json(verdict)).profile);
  verdict.profile = std::make_shared<const Profile>(profile_of(recorded(), h200(), "cuda:sm_90a", std::nullopt));
  const Verdict read = verdict_from_json(json::parse(to_json(verdict).dump()));
  ASSERT_TRUE(read.profile);
  EXPECT_EQ(to_json(*read.profile), to_json(*verdict.profile));
}

TEST(CallsRecords, ComeBackFromJson) {
  const json node = to_json(recorded());
  EXPECT_EQ(to_json(calls_record_from_json(json::parse(node.dump()))), node);
}

// A candidate's process may say anything.
TEST(CallsRecords, LeaveOutWhatCannotBe) {
  json node = to_json(recorded());
  node["calls"].push_back(-1.0);
  node["parts"][0]["seconds"].push_back(-1.0);
  node["parts"][1]["work"]["least_bytes"] = -5;
  node["parts"].push_back({{"name", "none"}, {"kernel", -1}, {"line", 3}, {"seconds", json::array()}});
  const CallsRecord record = calls_record_from_json(node);
  EXPECT_EQ(record.calls.size(), 4u);
  ASSERT_EQ(record.parts.size(), 1u);
  EXPECT_EQ(record.parts[0].name, "scale");
  EXPECT_THROW(calls_record_from_json(json::parse(R"({"calls": [], "parts": 3})")), json::exception);
  EXPECT_THROW(calls_record_from_json(json()), json::exception);
  const Profile nothing = profile_of({"clock", {}, {}}, {}, "cpu", std::nullopt);
  EXPECT_THAT(nothing.kernels, IsEmpty());
  EXPECT_EQ(nothing.host_share, 0);
  EXPECT_THAT(profile_text(nothing), HasSubstr("a call takes 0 us"));
}

TEST(CallsRecords, TakeTheTimesOfTheDevice) {
  const std::vector<DeviceTime> times = {
      {"matmul_0", 20e-6}, {"cunn_SoftMax", 8e-6}, {"matmul_0", 22e-6}, {"matmul_0", 21e-6}, {"matmul_0", 23e-6}};
  CallsRecord record = recorded();
  // Two calls, in each of which `matmul_0` ran twice, as before; `scale` is not among them.
  take_device_times(record, {"", "matmul_0", "scale_0"}, times, 2);
  EXPECT_EQ(record.method, "CUPTI");
  EXPECT_THAT(record.parts[1].seconds, ElementsAre(20e-6, 22e-6, 21e-6, 23e-6, 20e-6, 22e-6, 21e-6, 23e-6));
  EXPECT_EQ(record.parts[2].seconds, recorded().parts[2].seconds);
  // Counts that do not fit, and names that two parts have, tell nothing.
  CallsRecord other = recorded();
  take_device_times(other, {"", "matmul_0", "scale_0"}, times, 4);
  take_device_times(other, {"", "matmul_0", "matmul_0"}, times, 2);
  EXPECT_EQ(other.method, "events");
  EXPECT_EQ(to_json(other), to_json(recorded()));
}

TEST(ProfileTexts, SayWhatToLookAt) {
  Profile profile = profile_of(recorded(), h200(), "cuda:sm_90a", std::nullopt);
  profile.eager = side_profile_of({"events",
                                   {240e-6, 240e-6},
                                   {{"aten::linear", -1, 0, {100e-6, 104e-6, 100e-6, 104e-6}},
                                    {"aten::relu", -1, 0, {30e-6, 30e-6}},
                                    {"aten::view", -1, 0, {1e-7, 1e-7}},
                                    {"aten::t", -1, 0, {1e-7, 1e-7}}}},
                                  std::nullopt);
  tilepilot::testing::expect_golden("eval/golden/profile_gpu.txt", profile_text(profile) + "\n");
  EXPECT_EQ(top_kernel_text(profile), "`matmul`, line 12: 60 % of a call, compute-bound at 14 % of the roofline");
  EXPECT_EQ(top_kernel_text(Profile()), "");
}

TEST(ProfileTexts, OfAProcessorSayWhatItsThreadsDid) {
  CallsRecord record{"clock", {1e-3, 1e-3}, {}};
  record.parts.push_back(kernel_part("softmax", 9, {0.9e-3, 0.9e-3}));
  record.parts[0].work = {2e6, 2e6, 0, 1e6, 0, "", true};
  record.parts[0].cpu = CpuUse{1, 1, {11, 14}};
  const ProfiledMachine machine{"a processor on 4 threads", 20e9, 1e12, 1e12, 1e12};
  const std::string text = profile_text(profile_of(record, machine, "cpu", std::nullopt));
  EXPECT_THAT(text, HasSubstr("one block, so one thread: a larger grid"));
  EXPECT_THAT(text, HasSubstr("bounds are checked as it runs in lines 11, 14"));
  EXPECT_THAT(text, Not(HasSubstr("eager")));
  record.parts[0].work.least_bytes = 17e6;
  EXPECT_THAT(profile_text(profile_of(record, machine, "cpu", std::nullopt)),
              HasSubstr("memory-bound at 94 % of the roofline"));
}

TEST(ProfileTexts, WriteTimesWithThreeDigits) {
  EXPECT_EQ(time_text(0.1234), "0.123 us");
  EXPECT_EQ(time_text(12.34), "12.3 us");
  EXPECT_EQ(time_text(812.4), "812 us");
  EXPECT_EQ(time_text(1234.5), "1.23 ms");
  EXPECT_EQ(time_text(45678), "45.7 ms");
  EXPECT_EQ(time_text(2.5e6), "2.50 s");
}

}  // namespace
}  // namespace tilepilot::eval
