// What a process that ran calls tells of them, before anybody knows the machine's rates: the raw side of a profile. It
// may come from a candidate's process, which may say anything.
#pragma once

#include "eval/graph/roofline.h"
#include "eval/profile/profile.h"

namespace tilepilot::eval {

struct PartRecord {
  std::string name;
  int kernel = -1;              // the number in its program; -1: an operator of ATen
  int line = 0;                 // of the program's text; 0: unknown
  std::vector<double> seconds;  // of each time that it ran
  // Of a kernel.
  KernelWork work = {};
  std::optional<GpuUse> gpu = {};
  std::optional<CpuUse> cpu = {};
  std::vector<std::string> instructions = {};
  std::vector<Choice> choices = {};
};

struct CallsRecord {
  std::string method;         // as in Profile
  std::vector<double> calls;  // seconds, in which `parts` ran
  std::vector<PartRecord> parts;
  // Of calls whose times mean nothing: how often parts ran stays.
  void without_times();
};
// A kernel's launches as the GPU itself tells them, in order.
struct DeviceTime {
  std::string name;  // of the kernel's function
  double seconds = 0;
};
// Puts the GPU's own times in place of those of kernels: of a function that is one part's alone, and that ran as often
// in each of `calls` calls as it did before. `functions`: by part of the record; empty: none that is known.
void take_device_times(CallsRecord& record, const std::vector<std::string>& functions,
                       const std::vector<DeviceTime>& times, size_t calls);
nlohmann::json to_json(const CallsRecord& record);
// May throw what nlohmann::json throws on another shape. What no honest record holds is left out: times below zero,
// lines below zero, more than a few thousand parts.
CallsRecord calls_record_from_json(const nlohmann::json& node);

// Of a processor with so many threads, or of a GPU by its name; rates of 0: a GPU that is not known.
ProfiledMachine profiled_processor(int threads, const std::filesystem::path& cache);
ProfiledMachine profiled_gpu(const std::string& name);

// `call`: how long a call takes without being watched; nullopt: as `record` says.
Profile profile_of(const CallsRecord& record, const ProfiledMachine& machine, const std::string& target,
                   const std::optional<Timing>& call);
SideProfile side_profile_of(const CallsRecord& record, const std::optional<Timing>& call);

// The least microseconds that a launch of such work takes, and what of the machine bounds it.
struct LaunchRoofline {
  double us = 0;
  std::string bound;
};
LaunchRoofline launch_roofline(const KernelWork& work, const ProfiledMachine& machine);

}  // namespace tilepilot::eval
