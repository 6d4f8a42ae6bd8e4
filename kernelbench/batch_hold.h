// Who runs a batch, written into its database: keeps two calls apart also where they are on different machines.
//
// On one machine a name of the system decides (batch_lock.h). Across machines the batch's row says who has it, and a
// number in it grows every few seconds. Whoever finds the row of a process that is elsewhere watches that number for a
// while: clocks of different machines are not compared. This is as safe as the database's own locks are; on a file
// system that has none, two calls that begin at the same moment may both get it.
#pragma once

#include <atomic>
#include <condition_variable>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "kernelbench/batch_lock.h"

namespace SQLite {
class Database;
}

namespace tilepilot::kernelbench {

struct HoldTimes {
  double beat_s = 10;      // the number grows this often
  double patience_s = 45;  // one that did not grow for so long belongs to nobody
};

// A database's batch that a process runs, or ran when it was killed on another machine.
struct HeldBatch {
  int64_t batch = 0;
  std::string holder;     // JSON
  int64_t heartbeat = 0;  // grows while it is run
  std::string where;      // "process 12 on `host`", for people
  bool is_here = false;   // on this machine, where a process that is dead counts as none
};
// Those of a database. Throws SQLite's exceptions.
std::vector<HeldBatch> held_batches(SQLite::Database& database);

class BatchHold {
 public:
  // Takes the batch for this process. `waits` is told why that takes long. Errors: `bad_usage`, another process runs
  // the batch; those of the store.
  static Result<std::unique_ptr<BatchHold>> take(const std::filesystem::path& store, int64_t batch,
                                                 const std::function<void(const std::string&)>& waits,
                                                 const HoldTimes& times = {});
  // Gives it back. A process that is killed does not come here; what it leaves is seen to be nobody's.
  ~BatchHold();
  BatchHold(const BatchHold&) = delete;

  // Another machine has taken the batch, because this process stood still for too long.
  bool lost() const { return lost_; }

 private:
  BatchHold(eval::Descriptor lock, std::shared_ptr<SQLite::Database> database, int64_t batch)
      : lock_(std::move(lock)), database_(std::move(database)), batch_(batch) {}
  // Writes this process into the batch's row, unless another one stands there and was not watched in vain.
  Result<std::optional<HeldBatch>> claim(const std::filesystem::path& store, const std::optional<HeldBatch>& watched);
  void beat(double every_s);

  eval::Descriptor lock_;
  std::shared_ptr<SQLite::Database> database_;
  const int64_t batch_;
  std::string holder_;
  std::atomic<bool> lost_ = false;
  std::mutex mutex_;
  std::condition_variable ends_;
  bool ended_ = false;
  std::thread thread_;
};

}  // namespace tilepilot::kernelbench
