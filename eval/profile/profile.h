// Where the time of a verified program's call goes: by generated kernel and by operator of ATen, beside what eager's
// own call does. Plain data; docs/profiling.md says how it is measured.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "eval/judge.h"

namespace tilepilot::eval {

// Of a launch, by the tile program's own counts (compiler/ir/launch_work.h).
struct KernelWork {
  double least_bytes = 0, requested_bytes = 0;
  double product_flops = 0, other_flops = 0, functions = 0;
  std::string product_type;  // "float16"; empty: no products of tiles
  bool exact = true;
  // A function is as many operations as a GPU's units for functions are slower than its others.
  static constexpr double kOperationsOfFunction = 16;
  double flops() const { return product_flops + other_flops + kOperationsOfFunction * functions; }
};

// What a kernel takes of a GPU, as the driver says it.
struct GpuUse {
  int registers = 0, spilled_bytes = 0;            // of a thread
  int64_t static_shared = 0, dynamic_shared = 0;   // of a block, in bytes
  std::array<int64_t, 3> grid = {}, threads = {};  // of the last launch
  int64_t cluster = 1;                             // blocks
  int64_t resident_blocks = 0;                     // that a multiprocessor runs at once
  int multiprocessors = 0;
  double occupancy = 0;  // resident threads, as a share of the most there can be
};

struct CpuUse {
  int64_t blocks = 0;
  int threads = 1;                 // that shared them
  std::vector<int> checked_lines;  // where bounds are checked as it runs
};

// What the compiler chose for a statement, and what keeps it from something faster.
struct Choice {
  int line = 0;
  std::string what, chosen;
  std::vector<std::string> obstacles;
};

struct KernelProfile {
  std::string name;
  int number = 0;       // among the kernels of its program
  int line = 0;         // of the program's text; 0: unknown
  double launches = 0;  // a call
  Timing time;          // of a launch
  double us = 0;        // of a call, all launches together
  double share = 0;     // of the call
  KernelWork work;
  double roofline_us = 0;  // the least that a launch can take on this machine; 0: the machine's rates are not known
  std::string bound;       // "memory" or "compute": what the roofline is made of; empty with it
  std::optional<GpuUse> gpu;
  std::optional<CpuUse> cpu;
  std::vector<std::string>
      instructions;  // on a GPU: "wgmma", "TMA", "stmatrix", "mma", "cp.async", ... that its code has
  std::vector<Choice> choices;
  std::map<std::string, double> metrics;  // of Nsight Compute, by its own names; mostly empty
  double bytes_per_s() const { return time.median_us > 0 ? work.least_bytes / time.median_us * 1e6 : 0; }
  double flops_per_s() const { return time.median_us > 0 ? work.flops() / time.median_us * 1e6 : 0; }
  // Of what the roofline allows; 0: not known.
  double efficiency() const { return time.median_us > 0 ? roofline_us / time.median_us : 0; }
};

// An operator that the program, or eager, calls itself; not those that it calls in turn.
struct OperatorProfile {
  std::string name;  // "aten::linear"
  int line = 0;      // of the program's text; 0: unknown, or eager's
  double count = 0;  // of a call
  Timing time;       // of one
  double us = 0;     // of a call, all together
  double share = 0;  // of the call
};

// Peaks of the machine, no program exceeds them.
struct ProfiledMachine {
  std::string name;
  double bytes_per_s = 0;  // 0: the rates are not known
  double half_flops = 0, single_flops = 0, other_flops = 0;
};

struct SideProfile {  // of eager
  Timing call;
  std::vector<OperatorProfile> operators;  // the dearest first
  double other_us = 0;                     // of a call: between them
};

struct Profile {
  std::string target;
  ProfiledMachine machine;
  std::string method;  // "clock", "events" or "CUPTI": where times come from
  Timing call;
  std::vector<KernelProfile> kernels;      // the dearest first
  std::vector<OperatorProfile> operators;  // likewise
  double host_us = 0, host_share = 0;      // of a call, beside all of them
  std::optional<SideProfile> eager;
  std::vector<std::string> notes;
};

nlohmann::json to_json(const Profile& profile);
// May throw what nlohmann::json throws on another shape.
Profile profile_from_json(const nlohmann::json& node);

}  // namespace tilepilot::eval
