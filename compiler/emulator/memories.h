// What a block sees of memory, its own shared memory and the launch's buffers: every access is checked here, noted in a
// shadow, and logged for the counters. An access that is not possible is reported and left out; a read then gives
// zeros.
#pragma once

#include <deque>
#include <unordered_set>

#include "compiler/emulator/block.h"
#include "compiler/emulator/global_memory.h"
#include "compiler/emulator/report/access_log.h"

namespace tilepilot::emulator {

class Memories {
 public:
  struct Request {
    emulated::shared_place shared;
    emulated::global_place global;
    bool is_shared;
    AccessKind kind;
    uint32_t bytes;
    const void* code;             // the call in the kernel's library
    const void* value = nullptr;  // of a write
    uint32_t alignment = 0;       // 0: as many as bytes
    bool asynchronous = false;    // of a copy that the thread does not wait for
  };

  // What the block belongs to.
  struct Around {
    GlobalMemory& global;
    LaunchOrder& launch;
    Clocks& clocks;
    FenceLog& fences;
    HappensBefore& order;
  };
  // `first_thread`: of the block, in the numbers of moments.
  Memories(const EmulatedLaunch& launch, int64_t first_thread, const Around& around, const Options& options,
           Reporter& reporter);

  void start_block();
  // The memory of an access by the thread that `who` stands for, or null if it is not possible.
  char* access(const Request& request, const Moment& who);
  // One row of a matrix; not logged.
  char* matrix_row(const emulated::shared_place& row, bool writes, const void* value, const Moment& who);
  // Of a thread of another block of the cluster, which writes `bytes` of `value`; not logged.
  char* remote_write(const emulated::shared_place& to, uint32_t bytes, const void* value, const Moment& who);

  // Asynchronous accesses of the async proxy to [at, at + bytes) of a tile, on behalf of `who`. Null: not possible.
  char* begin_write(const emulated::shared_place& to, int64_t bytes, const Moment& who);
  // Of the read, `who` is given the clock that it is known by.
  const char* begin_read(const emulated::shared_place& from, int64_t bytes, Moment& who);
  void end_write(int64_t at, int64_t bytes, const Moment& begun, const Moment& end);
  void end_read(int64_t at, int64_t bytes, const Moment& begun, const Moment& end);
  // The async proxy's access to any number of bytes of a global buffer; not logged. A write or update is under way
  // until it is ended; of an update, `who` is given the clock that it is known by.
  char* global_bytes(const emulated::global_place& place, int64_t bytes, AccessKind kind, Moment& who);
  void end_global_write(const emulated::global_place& place, int64_t bytes, const Moment& begun, const Moment& end,
                        bool is_update);
  EmulatedBuffer& buffer(int64_t number) { return global_.buffer(number).given; }
  int64_t arena_bytes() const { return arena_bytes_; }
  // The bytes that a barrier lies in: written by who makes it, then only updated.
  bool access_barrier(const emulated::shared_place& at, bool makes, const Moment& who);
  // Who wrote last into the bytes of one that was made then, if that was not its maker.
  std::optional<Moment> written_since(const emulated::shared_place& barrier, const Moment& made) const;

  void copy_async(const emulated::copy_request& request, const void* code, const Moment& now);
  void commit_copies(int thread) { ++copies_[static_cast<size_t>(thread)].groups; }
  void wait_copies(int64_t under_way, const Moment& now);
  // All copies of the thread so far are over, for those who know end(site of the copy).
  void land_copies(const Moment& now, const std::function<Moment(uint32_t site)>& end);

  // True if the thread should let others run after its last access.
  bool log_is_full() const { return log_is_full_; }
  StepLog* steps() const { return options_.steps; }
  // A step of the thread, that is prepared under this number.
  void log_step(int64_t number, const Moment& who);
  // All lanes of the warp stand still.
  void count_warp(int warp, Counters& counters);

 private:
  struct Copy {
    int64_t at, group;
    uint32_t bytes, site;
    std::array<char, 16> value;
  };
  struct Copies {
    int64_t groups = 0;  // that are closed
    std::deque<Copy> under_way;
  };
  struct Place {
    char* memory = nullptr;  // null: not possible
    Shadow* shadow = nullptr;
    int64_t at = 0;  // in the arena or the buffer
  };

  const Options& options_;
  const size_t first_thread_;
  GlobalMemory& global_;
  LaunchOrder& launch_;
  Clocks& clocks_;
  HappensBefore& order_;
  Reporter& reporter_;
  const Viewpoint view_;  // of shared memory
  std::vector<std::max_align_t> arena_storage_;
  char* arena_;
  int64_t arena_bytes_;
  std::unique_ptr<Shadow> arena_shadow_;
  std::vector<Copies> copies_;   // of each thread
  std::vector<AccessLog> logs_;  // of each warp
  bool log_is_full_ = false;
  std::unordered_set<uintptr_t> mapped_;  // pages of the process, of memory that no parameter names

  size_t in_block(const Moment& who) const { return who.thread - first_thread_; }
  void land(const Copy& copy, const Moment& now, const Moment& end);
  char* unlogged(const Request& request, const Moment& who);
  Place find(const Request& request, const Moment& who);
  Place find_by_address(const Request& request, const Moment& who);
  Request with_buffer(Request request) const;
  // Whether the process has memory there.
  bool is_mapped(const char* at, int64_t bytes);
  bool check_place(const Request& request, int64_t at, int64_t first, int64_t last, const Moment& who);
  void log(const Request& request, int64_t at, const Moment& who, bool asynchronous = false);
  void add_step(int warp, const WarpAccess& access, const Traffic& traffic);
  void tell(const Findings& found, const Request& request, const Place& place, const Moment& who);
  void tell_conflict(const Conflict& conflict, const Request& request, const Moment& who);
  std::string where(const Request& request, int64_t at) const;
};

}  // namespace tilepilot::emulator
