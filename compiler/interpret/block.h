// One block of a kernel. Each of its threads is a cursor of its own: the statements that it is inside of, its variables
// and its buffers. Kernels without thread variables have one cursor, which does everything.
#pragma once

#include "compiler/interpret/evaluate.h"
#include "compiler/interpret/meetings.h"

namespace tilepilot::interpret {

class Block {
 public:
  Block(Session& session, const ir::Kernel& kernel, const Scope& program, const Indices& at);
  Block(const Block&) = delete;

  void run();

 private:
  // A statement that has begun: a block and its next child, a loop and its next iteration.
  struct Frame {
    const ir::Stmt* stmt;
    int64_t next = 0, end = 0;
  };
  using Tiles = std::unordered_map<const ir::BufferData*, Storage>;
  struct Thread {
    Indices at;
    Scope scope;
    Tiles tiles;
    std::vector<Frame> stack;
    const ir::Stmt* waiting = nullptr;  // where it meets the others
    Element offered;                    // to a reduction over threads
  };

  Session& session_;
  const ir::Kernel& kernel_;
  Scope scope_;
  Tiles tiles_;
  std::vector<Thread> threads_;
  std::vector<Thread*> ready_;
  bool together_ = false;  // one thread works for all

  void allocate(const ir::Buffer& buffer, Scope& scope, Tiles& tiles) const;
  void make_threads();

  void advance(Thread& thread);
  void enter(Thread& thread, const ir::Stmt& stmt);
  void leave(Thread& thread, bool ends_loop);
  void run_to_end(Thread& thread, const ir::Stmt& stmt);
  void run_parallel(Thread& thread, const ir::For& loop);
  void bind(Thread& thread, const ir::Var& var, int64_t value) const;

  void arrive(Thread& thread, const ir::Stmt& stmt);
  void meet();
  void complete(const ir::Stmt& stmt);
  void work_for_all(const ir::Stmt& stmt);
  void reduce(const ir::AllReduce& reduce, Span span);
  int64_t group_of(const Thread& thread, const std::vector<int>& axes) const;
  bool agree_on(const ir::Stmt& stmt);
  void share(const ir::Stmt& stmt);
  void fail_apart();
};

}  // namespace tilepilot::interpret
