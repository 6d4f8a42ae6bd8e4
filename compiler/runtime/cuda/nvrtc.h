// CUDA C++ to machine code by NVRTC, the compiler that comes with CUDA and with PyTorch as a shared library. It is
// found and opened at run time. What it made is kept in a cache keyed by content (source, target, flags, the library),
// shared by processes as the CPU's compiled kernels are; what is there needs no library. No GPU is needed.
#pragma once

#include <filesystem>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "compiler/diagnostics/result.h"

namespace tilepilot::runtime::cuda {

struct NvrtcOptions {
  std::filesystem::path library;               // the library itself; empty: searched for
  std::vector<std::filesystem::path> folders;  // where: CUDA toolkits, site-packages; then wherever the system looks
  std::filesystem::path cache;                 // empty: no disk cache
  std::vector<std::string> extra_flags;
};

// $CUDA_HOME, $CUDA_PATH, $CONDA_PREFIX, /usr/local/cuda, the site-packages of $VIRTUAL_ENV, $CONDA_PREFIX, of ./.venv,
// of the user and of the system. Read at program start only.
std::vector<std::filesystem::path> default_cuda_folders();
// The site-packages of the Python installed in `folder`, in folder/lib/python3.11 and the like.
std::vector<std::filesystem::path> package_folders(const std::filesystem::path& folder);

struct CompiledModule {
  std::string cubin;
  std::string log;  // what the compiler said although it was content; empty if that was long ago
};

// The opened library; nvrtc.cpp.
class NvrtcLibrary;

// May be used by several threads, which compile side by side.
class Nvrtc {
 public:
  explicit Nvrtc(NvrtcOptions options);
  ~Nvrtc();

  // `architecture` is "sm_80" or "sm_90a". Errors: nvrtc_missing (not found, or older than 12.4), compiler_failed (its
  // messages as notes). A cache that cannot be written is a `cache_degraded` warning, once.
  Result<CompiledModule> compile(const std::string& source, const std::string& architecture, DiagnosticList& warnings);
  // The virtual machine's code, as text; never cached.
  Result<std::string> ptx(const std::string& source, const std::string& architecture);
  // "NVRTC 13.0 (/usr/local/cuda/lib64/libnvrtc.so.13)".
  Result<std::string> version();

 private:
  NvrtcOptions options_;
  std::mutex mutex_;  // guards what follows
  bool searched_ = false;
  std::vector<std::filesystem::path> candidates_;
  std::string identity_;  // what tells these libraries from others; empty: only opening one will tell
  std::shared_ptr<NvrtcLibrary> library_;
  bool degraded_ = false;  // the warning was given

  void search();
  Result<std::string> key(const std::string& source, const std::vector<std::string>& flags);
  Result<std::shared_ptr<NvrtcLibrary>> open();
  std::vector<std::string> flags(const std::string& architecture) const;
  void keep(const std::string& cubin, const std::string& key, DiagnosticList& warnings);
};

}  // namespace tilepilot::runtime::cuda
