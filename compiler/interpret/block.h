// One block of a kernel. Each of its threads is a cursor of its own: the statements that it is inside of, its variables
// and its buffers. Where statements are not for single threads one cursor does what all of them do: those of the block,
// or of a role.
#pragma once

#include "compiler/interpret/collectives.h"
#include "compiler/interpret/evaluate.h"

namespace tilepilot::interpret {

class Block {
 public:
  Block(Session& session, const ir::Kernel& kernel, const CollectiveGroups& groups, const Scope& program,
        const Indices& at);
  Block(const Block&) = delete;

  void run();

 private:
  // A statement that has begun: a block and its next child, a loop and its next iteration.
  struct Frame {
    const ir::Stmt* stmt;
    int64_t next = 0, end = 0;
  };
  using Tiles = std::unordered_map<const ir::BufferData*, Storage>;
  // A hardware barrier.
  struct Phases {
    int64_t arrivals;  // that complete a phase
    int64_t pending, bytes = 0, completed = 0;
    bool has_passed(int64_t parity) const { return (completed & 1) != (parity & 1); }
  };
  struct Thread {
    Indices at;
    int64_t number;   // in the block
    int64_t threads;  // that it stands for
    Scope scope = {};
    Tiles tiles = {};
    std::vector<Frame> stack = {};
    const ir::Stmt* waiting = nullptr;  // at a collective operation, or for a barrier
    const Phases* barrier = nullptr;    // that it waits for, until the phase of this parity has completed
    int64_t parity = 0;
    Element offered = {};  // to a reduction over threads, or a shuffle
    int64_t lane = 0;
    Indices row = {};  // that it names for a matrix load
  };
  using Group = std::vector<Thread*>;

  Session& session_;
  const ir::Kernel& kernel_;
  const CollectiveGroups& groups_;
  Scope scope_;
  Tiles tiles_;
  std::vector<Thread> threads_;
  Group ready_;  // by number
  std::unordered_map<const ir::BufferData*, std::vector<Phases>> barriers_;
  std::unordered_map<int64_t, Group> syncs_;  // who waits there, by the number of the hardware barrier
  bool together_ = false;                     // one thread works for all

  void allocate(const ir::Buffer& buffer, Scope& scope, Tiles& tiles) const;
  void make_threads();
  void make_threads(const Indices& extents);

  void advance(Thread& thread);
  void enter(Thread& thread, const ir::Stmt& stmt);
  void leave(Thread& thread, bool ends_loop);
  void run_to_end(Thread& thread, const ir::Stmt& stmt);
  void run_parallel(Thread& thread, const ir::For& loop);
  void bind(Thread& thread, const ir::Var& var, int64_t value) const;

  void offer(Thread& thread, const ir::Stmt& stmt);
  void arrive(Thread& thread, const ir::Stmt& stmt);
  void release(Thread& thread);
  Group group_at(const ir::Stmt& stmt, const Thread& arriving);
  void complete(const ir::Stmt& stmt, const Group& group);
  void work_for_all(const ir::Stmt& stmt, const Group& group);
  void reduce(const ir::AllReduce& reduce, Span span, const Group& group);
  int64_t share_of(const Thread& thread, const ir::AllReduce& reduce) const;
  static void shuffle(const ir::Shuffle& shuffle, const Group& group);
  void with_matrices(const ir::Stmt& stmt, const Group& warp);
  void load(const ir::LoadMatrix& load, Span span, const Group& warp) const;
  void multiply(const ir::Mma& mma, Span span, const Group& warp) const;
  bool agree_on(const ir::Stmt& stmt, const Group& group);
  static void share(const ir::Stmt& stmt, const Group& group);

  void sync(Thread& thread, const ir::Sync& sync);
  void on_barrier(Thread& thread, const ir::Stmt& stmt, const ir::Barrier& node);
  void arrive_at(Phases& barrier, int64_t count);
  void print(const Thread& thread, const ir::Print& print);
  bool is_for(const Thread& thread, const ir::Roles& roles) const;
  void fail_apart();
};

}  // namespace tilepilot::interpret
