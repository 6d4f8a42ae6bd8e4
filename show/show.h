// `tilepilot show`: what the compiler made of the kernels of a program, as pictures. Who holds which element in which
// register, where shared tiles lie and what banks make of their accesses, when each warp does what, and how far the
// kernel is from the machine's roofline.
#pragma once

#include <map>

#include "compiler/diagnostics/result.h"
#include "compiler/ir/stmt.h"
#include "compiler/runtime/library.h"
#include "show/picture.h"

namespace tilepilot::show {

// Of a processor: what the roofline of its kernels is made of.
struct ProcessorRates {
  std::string name;
  double bytes_per_s = 0, half_flops = 0, single_flops = 0;  // 0: not known
};

struct ShowOptions {
  std::string file, call;                       // as given
  std::string target = "emulate:sm_90a";        // or cpu, emulate:sm_80, cuda:sm_80, cuda:sm_90a
  int64_t block = 0;                            // whose timeline is drawn
  double from = 0;                              // the cycle where that drawing begins
  bool executes = true;                         // false: nothing runs in the emulator
  std::map<std::string, int64_t> extents = {};  // of what is known at launch alone
  runtime::ToolchainOptions toolchain;
  ProcessorRates processor = {};
};

// Of each kernel of the program. Errors: what keeps the program from being compiled for the target.
Result<std::vector<KernelPicture>> picture_of(const ir::Program& program, const SourceMap& sources,
                                              const ShowOptions& options);

}  // namespace tilepilot::show
