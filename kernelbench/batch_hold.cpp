#include "kernelbench/batch_hold.h"

#include <SQLiteCpp/SQLiteCpp.h>
#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <climits>
#include <nlohmann/json.hpp>
#include <random>
#include <sstream>

#include "compiler/runtime/machine.h"
#include "compiler/source/file.h"
#include "retrieval/statement.h"

namespace tilepilot::kernelbench {
namespace {

using nlohmann::json;

std::string boot() {
  std::string text;
  read_file("/proc/sys/kernel/random/boot_id", text);
  return text.substr(0, text.find('\n'));
}

// Numbers of processes mean something within one.
std::string process_namespace() {
  char name[PATH_MAX] = "";
  const ssize_t length = readlink("/proc/self/ns/pid", name, sizeof name - 1);
  return {name, static_cast<size_t>(std::max<ssize_t>(length, 0))};
}

// When a process began, in the kernel's ticks; empty: there is none, or it is dead and nobody has asked for its end.
std::string start_of(int64_t process) {
  std::string text;
  if (!read_file(fmt::format("/proc/{}/stat", process), text)) return "";
  // The name, in brackets, may hold anything. After it come the state, and the start as the 20th field.
  const size_t end = text.rfind(')');
  if (end == std::string::npos) return "";
  std::istringstream fields(text.substr(end + 1));
  std::string field, state;
  fields >> state;
  for (int i = 1; i < 20 && fields >> field; ++i) {}
  return state == "Z" || state == "X" ? "" : field;
}

json this_process() {
  std::random_device random;
  return {{"host", runtime::host_name()},
          {"boot", boot()},
          {"namespace", process_namespace()},
          {"process", getpid()},
          {"started", start_of(getpid())},
          {"mark", fmt::format("{:08x}{:08x}", random(), random())}};  // a row is one call's
}

// A holder's text is what another version, or another machine, may have written. Nullopt: its process was here, and is
// dead.
std::optional<HeldBatch> held(int64_t batch, const std::string& text, int64_t heartbeat) {
  const json holder = json::parse(text, nullptr, /*allow_exceptions*/ false);
  auto field = [&](const char* name) {
    return holder.is_object() && holder.contains(name) && holder[name].is_string() ? holder[name].get<std::string>()
                                                                                   : std::string();
  };
  HeldBatch found{batch, text, heartbeat, "another process", false};
  if (!holder.is_object()) return found;
  const int64_t process =
      holder.contains("process") && holder["process"].is_number_integer() ? holder["process"].get<int64_t>() : 0;
  found.where = fmt::format("process {} on `{}`", process, field("host"));
  found.is_here = !field("boot").empty() && field("boot") == boot() && field("namespace") == process_namespace();
  if (found.is_here && start_of(process) != field("started")) return std::nullopt;
  return found;
}

Error being_run(const HeldBatch& by) {
  return make_error(DiagnosticKind::bad_usage, {}, fmt::format("batch {} is being run by {}", by.batch, by.where),
                    "wait until that ends, or begin another batch with `--new`");
}

void sleep(double seconds) { std::this_thread::sleep_for(std::chrono::duration<double>(seconds)); }

}  // namespace

std::vector<HeldBatch> held_batches(SQLite::Database& database) {
  std::vector<HeldBatch> batches;
  SQLite::Statement query(database, "SELECT id, holder, heartbeat FROM batch WHERE holder IS NOT NULL ORDER BY id");
  while (query.executeStep()) {
    auto found = held(query.getColumn(0).getInt64(), query.getColumn(1).getString(), query.getColumn(2).getInt64());
    if (found) batches.push_back(*std::move(found));
  }
  return batches;
}

Result<std::optional<HeldBatch>> BatchHold::claim(const std::filesystem::path& store,
                                                  const std::optional<HeldBatch>& watched) {
  try {
    SQLite::Transaction transaction(*database_, SQLite::TransactionBehavior::IMMEDIATE);
    for (HeldBatch& other : held_batches(*database_)) {
      const bool stands_still = watched && watched->holder == other.holder && watched->heartbeat == other.heartbeat;
      if (other.batch == batch_ && !stands_still) return std::optional(std::move(other));
    }
    const std::string mine = this_process().dump();
    retrieval::change(*database_, "UPDATE batch SET holder = ?, heartbeat = heartbeat + 1 WHERE id = ?", mine, batch_);
    transaction.commit();
    holder_ = mine;
    return std::optional<HeldBatch>();
  } catch (const std::exception& exception) { return retrieval::database_error(store, exception); }
}

Result<std::unique_ptr<BatchHold>> BatchHold::take(const std::filesystem::path& store, int64_t batch,
                                                   const std::function<void(const std::string&)>& waits,
                                                   const HoldTimes& times) {
  auto lock = TRY(lock_batch(store, batch));
  auto database = TRY(retrieval::open_database(store));
  std::unique_ptr<BatchHold> hold(new BatchHold(std::move(lock), std::move(database), batch));
  std::optional<HeldBatch> watched;
  for (;;) {
    auto other = TRY(hold->claim(store, watched));
    if (!other) break;
    if (other->is_here || watched) return being_run(*other);
    waits(fmt::format("batch {} was begun by {}; looking for {:.0f} s whether that still runs", batch, other->where,
                      times.patience_s));
    watched = std::move(other);
    sleep(times.patience_s);
  }
  hold->thread_ = std::thread([self = hold.get(), every_s = times.beat_s] { self->beat(every_s); });
  return hold;
}

void BatchHold::beat(double every_s) {
  std::unique_lock lock(mutex_);
  while (!ends_.wait_for(lock, std::chrono::duration<double>(every_s), [this] { return ended_; })) {
    try {
      if (retrieval::change(*database_, "UPDATE batch SET heartbeat = heartbeat + 1 WHERE id = ? AND holder = ?",
                            batch_, holder_) == 0)
        lost_ = true;
    } catch (const std::exception&) {
      // The database is busy or the disk full: the batch itself finds that, and tells it.
    }
  }
}

BatchHold::~BatchHold() {
  {
    std::lock_guard lock(mutex_);
    ended_ = true;
  }
  ends_.notify_all();
  if (thread_.joinable()) thread_.join();
  if (holder_.empty()) return;
  try {
    retrieval::change(*database_, "UPDATE batch SET holder = NULL WHERE id = ? AND holder = ?", batch_, holder_);
  } catch (const std::exception&) {
    // The row stays, and is seen to be nobody's.
  }
}

}  // namespace tilepilot::kernelbench
