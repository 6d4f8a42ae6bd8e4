// The process that compiles for candidates, which cannot start a compiler, nor read or write the cache of kernels. It
// is started by the judge; a candidate's only way to it is a socket: source in, sealed code out. The entry's key in the
// cache is computed here, from the source that was compiled.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <memory>
#include <vector>

#include "eval/process/wire.h"

namespace tilepilot::eval {

class CompilerBroker {
 public:
  struct Places {
    std::filesystem::path cache;                      // empty: none
    std::vector<std::filesystem::path> cuda_folders;  // where NVRTC may be
  };

  // Forks: to be called before this process has threads. Null if there is no memory for another process.
  static std::unique_ptr<CompilerBroker> start();
  ~CompilerBroker();
  CompilerBroker(const CompilerBroker&) = delete;

  // A socket for one candidate's process: what it may ask through (compiler_socket.h).
  Descriptor connect(const Places& places);
  // Whether some candidate has told, since the last call of connect(), that it brings device source of its own.
  bool saw_foreign_source() const;
  pid_t process() const { return process_; }

 private:
  struct Page;
  CompilerBroker(pid_t process, Descriptor control, Page* page);
  pid_t process_;
  Descriptor control_;
  Page* page_;  // shared with the process
};

}  // namespace tilepilot::eval
