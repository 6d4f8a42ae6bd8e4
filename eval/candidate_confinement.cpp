#include "eval/candidate_confinement.h"

namespace tilepilot::eval {

untrusted::Layers confine_candidate(bool in_namespaces, bool uses_gpu,
                                    const std::vector<std::filesystem::path>& libraries) {
  untrusted::Confinement confinement;
  // What LibTorch and the C library read: processors, memory, this process.
  confinement.files.readable = {
      "/proc/self",   "/proc/cpuinfo", "/proc/meminfo", "/sys/devices/system/cpu", "/sys/devices/system/node",
      "/dev/urandom", "/dev/zero"};
  confinement.files.writable = {"/dev/null"};
  confinement.calls = untrusted::Calls::computing;
  confinement.limits.open_files = 1024;
  if (uses_gpu) {
    auto& readable = confinement.files.readable;
    readable = {"/usr", "/lib", "/lib64", "/opt", "/etc", "/proc", "/sys", "/dev"};
    readable.insert(readable.end(), libraries.begin(), libraries.end());
    confinement.files.writable = {"/dev"};
    confinement.calls = untrusted::Calls::driving;
    confinement.limits.open_files = 0;
  }
  return untrusted::PreparedConfinement(std::move(confinement)).put_on(in_namespaces && !uses_gpu);
}

}  // namespace tilepilot::eval
