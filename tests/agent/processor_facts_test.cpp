// What a language model hears of the machine.
#include "agent/llm/processor_facts.h"

#include <gmock/gmock.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "agent/llm/hardware.h"

namespace tilepilot::agent {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;

class ProcessorFactsTest : public ::testing::Test {
 protected:
  ProcessorFactsTest() : folder_(fs::temp_directory_path() / ("tilepilot-facts-" + std::to_string(getpid()))) {}
  ~ProcessorFactsTest() override { fs::remove_all(folder_); }
  void write(const std::string& file, const std::string& text) const {
    fs::create_directories((folder_ / file).parent_path());
    std::ofstream(folder_ / file) << text << "\n";
  }

  const fs::path folder_;
};

TEST_F(ProcessorFactsTest, AreReadFromTheSystem) {
  const auto cache = [&](int index, const std::string& level, const std::string& type, const std::string& size,
                         const std::string& shared) {
    const std::string at = "cpu0/cache/index" + std::to_string(index) + "/";
    write(at + "level", level);
    write(at + "type", type);
    write(at + "size", size);
    write(at + "shared_cpu_list", shared);
  };
  cache(3, "3", "Unified", "32768K", "0-7,16-23");
  cache(0, "1", "Data", "48K", "0,16");
  cache(1, "1", "Instruction", "32K", "0,16");
  cache(2, "2", "Unified", "2M", "0,16");
  write("cpu0/topology/thread_siblings_list", "0,16");
  write("cpu16/topology/thread_siblings_list", "0,16");
  write("cpu1/topology/thread_siblings_list", "1,17");
  write("cpufreq/boost", "1");
  const ProcessorFacts facts = processor_facts(folder_);
  EXPECT_EQ(facts.cores, 2);
  EXPECT_EQ(caches_text(facts), ", 48 KB of L1 for 2 threads, 2048 KB of L2 for 2 threads, 32 MB of L3 for 16 threads");
}

TEST_F(ProcessorFactsTest, MayBeMissing) {
  EXPECT_EQ(processor_facts(folder_ / "none").cores, 0);
  EXPECT_EQ(caches_text(processor_facts(folder_ / "none")), "");
}

TEST(Hardware, NamesThreadsVectorsAndRates) {
  eval::MachineRates rates;
  rates.name = "a processor";
  rates.bytes_per_s = 10e9;
  rates.product_flops = rates.vector_flops = 100e9;
  const std::string text = describe_hardware("cpu", rates, 3);
  EXPECT_THAT(text, AllOf(HasSubstr("a processor; 3 threads"), HasSubstr("Memory moves 10 GB/s"),
                          HasSubstr("in vectors 100 GFLOP/s")));
}

}  // namespace
}  // namespace tilepilot::agent
