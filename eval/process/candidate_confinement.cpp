#include "eval/process/candidate_confinement.h"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>

#include "eval/process/wire.h"

namespace tilepilot::eval {
namespace {

// From the fork until the process has ended.
double seconds_of_process(bool confined) {
  const double begin = monotonic_seconds();
  bool in_namespaces = false;
  const pid_t child = confined ? untrusted::fork_into_namespaces(in_namespaces) : fork();
  if (child == 0) {
    if (confined) confine_candidate(in_namespaces, false, {});
    _exit(0);
  }
  if (child > 0) waitpid(child, nullptr, 0);
  return monotonic_seconds() - begin;
}

}  // namespace

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

double seconds_of_confinement(int pairs) {
  std::vector<double> differences;
  for (int i = 0; i < pairs; ++i) {
    const double plain = seconds_of_process(false);
    differences.push_back(seconds_of_process(true) - plain);
  }
  const auto middle = differences.begin() + pairs / 2;
  std::nth_element(differences.begin(), middle, differences.end());
  return *middle;
}

}  // namespace tilepilot::eval
