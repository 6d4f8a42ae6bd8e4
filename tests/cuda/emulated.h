// Running generated CUDA code in the emulator, on plain arrays.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "compiler/emulator/emulator.h"
#include "compiler/runtime/kernel.h"
#include "compiler/targets/cuda/codegen.h"

namespace tilepilot::testing {

// Programs that are compiled as one text, since that costs hardly more than one of them.
class EmulatedBatch {
 public:
  explicit EmulatedBatch(targets::gpu::Architecture architecture) : architecture_(architecture) {}

  // The number of the program in the batch; an error if no code can be generated for it. `sources`: if defects are to
  // name the lines of its text. `operation_counters`: if its arithmetic is to be counted.
  Result<size_t> add(const ir::Program& program, const SourceMap* sources = nullptr, bool operation_counters = false);
  // Puts a defect into its text; fails the test if that has no `before`.
  void plant(size_t number, const std::string& before, const std::string& after);
  size_t size() const { return programs_.size(); }
  const std::string& source(size_t number) const { return programs_[number].code.source; }

  // Fails the test if the texts do not compile; where NVRTC is, those without a defect for the target, too. `for_gpus`:
  // false leaves that out.
  void compile(bool optimise = false, bool for_gpus = true);
  // One launch after the other. Buffers that the program never wrote keep their bytes. What is wrong with it, or "".
  std::string run(size_t number, const std::vector<runtime::Argument>& arguments,
                  const emulator::Options& options = {});
  // Of the last run.
  const emulator::Counters& counters() const { return counters_; }
  const std::vector<emulator::Defect>& defects() const { return defects_; }
  const std::string& printed() const { return printed_; }

 private:
  struct Item {
    ir::Program program;
    targets::cuda::GeneratedCode code;
    const SourceMap* sources = nullptr;
    bool operation_counters = false, planted = false;
  };
  void compile_for_gpus() const;

  targets::gpu::Architecture architecture_;
  std::vector<Item> programs_;
  std::shared_ptr<emulator::EmulatedCode> compiled_;
  emulator::Counters counters_;
  std::vector<emulator::Defect> defects_;
  std::string printed_;
};

}  // namespace tilepilot::testing
