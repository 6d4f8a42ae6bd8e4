// Code generation in several threads at once, as tuning does it, gives what it gives alone.
#include <gtest/gtest.h>

#include <thread>

#include "compiler/targets/cuda/codegen.h"
#include "tests/cpu/kernel_fixture.h"
#include "tests/golden.h"

namespace tilepilot::testing {
namespace {

using targets::gpu::Architecture;

std::vector<std::string> generated(const std::vector<ir::Program>& programs) {
  std::vector<std::string> texts;
  for (const ir::Program& program : programs)
    for (const Architecture architecture : {Architecture::sm_80, Architecture::sm_90a}) {
      const auto code = targets::cuda::generate(program, architecture);
      texts.push_back(code.ok() ? code->source : render(code.error()));
    }
  return texts;
}

TEST(SideBySide, CodeIsTheSame) {
  std::vector<ir::Program> programs;
  for (const std::string& name : stems_in("cpu/cases", ".ir"))
    programs.push_back(parse(read_text(tests_path("cpu/cases/" + name + ".ir"))));
  ASSERT_GT(programs.size(), 3u);
  const std::vector<std::string> alone = generated(programs);
  std::vector<std::vector<std::string>> together(4);
  std::vector<std::thread> threads;
  for (auto& texts : together) threads.emplace_back([&] { texts = generated(programs); });
  for (std::thread& thread : threads) thread.join();
  for (const auto& texts : together) EXPECT_EQ(texts, alone);
}

}  // namespace
}  // namespace tilepilot::testing
