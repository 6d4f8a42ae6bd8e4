// The NVRTC library itself: its functions by their types, and programs that are destroyed at the end.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "compiler/diagnostics/result.h"

namespace tilepilot::runtime::cuda {

class NvrtcLibrary {
 public:
  // `path` may be a bare name, which the system's loader finds. Errors: nvrtc_missing.
  static Result<std::shared_ptr<NvrtcLibrary>> open(const std::filesystem::path& path);
  NvrtcLibrary(const NvrtcLibrary&) = delete;

  int major() const { return major_; }
  int minor() const { return minor_; }
  const std::filesystem::path& path() const { return path_; }

  enum class Output { cubin, ptx };
  struct Compilation {
    bool succeeded = false;
    std::string code, log;
  };
  Compilation compile(const std::string& source, const std::vector<std::string>& flags, Output output) const;

 private:
  // Types as in nvrtc.h of CUDA 12 and 13.
  using Program = struct NvrtcProgram*;
  struct Functions {
    int (*version)(int* major, int* minor);
    int (*create)(Program*, const char* source, const char* name, int headers, const char* const*, const char* const*);
    int (*destroy)(Program*);
    int (*compile)(Program, int count, const char* const* flags);
    int (*log_size)(Program, size_t*);
    int (*log)(Program, char*);
    int (*ptx_size)(Program, size_t*);
    int (*ptx)(Program, char*);
    int (*cubin_size)(Program, size_t*);
    int (*cubin)(Program, char*);
    const char* (*error_text)(int);
  };

  explicit NvrtcLibrary(std::filesystem::path path) : path_(std::move(path)) {}
  bool is_new_enough() const;
  bool link(void* library);  // false if it lacks functions
  void load_builtins() const;
  static std::string text_of(Program program, int (*size)(Program, size_t*), int (*get)(Program, char*));

  std::filesystem::path path_;
  Functions call_{};
  int major_ = 0, minor_ = 0;
};

}  // namespace tilepilot::runtime::cuda
