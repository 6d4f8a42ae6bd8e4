#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "compiler/runtime/kernel.h"

namespace tilepilot::runtime {
namespace {

using Body = std::function<void(int64_t, int64_t)>;

// One call of the pool. Threads take pieces until none is left.
struct Job {
  const Body& body;
  int64_t count;
  int64_t piece;
  std::atomic<int64_t> next{0};

  void work() {
    for (;;) {
      const int64_t begin = next.fetch_add(piece, std::memory_order_relaxed);
      if (begin >= count) return;
      body(begin, std::min(begin + piece, count));
    }
  }
};

inline void pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

class ThreadPool {
 public:
  explicit ThreadPool(int threads) {
    for (int k = 1; k < threads; ++k) workers_.emplace_back([this] { serve(); });
  }
  ~ThreadPool() {
    {
      const std::lock_guard lock(mutex_);
      ending_ = true;
      calls_.fetch_add(1);
    }
    wake_.notify_all();
    for (std::thread& worker : workers_) worker.join();
  }

  void run(int64_t count, const Body& body) {
    if (count <= 0) return;
    const std::unique_lock busy(running_, std::try_to_lock);
    if (!busy || workers_.empty() || count == 1) return body(0, count);  // also a call from inside a call
    const int64_t threads = static_cast<int64_t>(workers_.size()) + 1;
    Job job{body, count, std::max<int64_t>(1, count / (threads * kPiecesPerThread))};
    publish(&job);
    job.work();
    retire();
  }

 private:
  static constexpr int64_t kPiecesPerThread = 8;
  static constexpr int kSpins = 4000;  // some tens of microseconds, between launches of one forward pass

  std::vector<std::thread> workers_;
  std::mutex running_;  // held by the caller whose job runs
  std::mutex mutex_;    // guards job_, ending_, and the sleep of workers
  std::condition_variable wake_;
  Job* job_ = nullptr;
  bool ending_ = false;
  std::atomic<uint64_t> calls_{0};  // grows with each job
  std::atomic<int> inside_{0};      // workers that hold the job

  void publish(Job* job) {
    {
      const std::lock_guard lock(mutex_);
      job_ = job;
      calls_.fetch_add(1);
    }
    wake_.notify_all();
  }

  // No worker joins any more; waits for those that did.
  void retire() {
    {
      const std::lock_guard lock(mutex_);
      job_ = nullptr;
    }
    for (int spins = 0; inside_.load(std::memory_order_acquire) != 0; ++spins)
      spins < kSpins ? pause() : std::this_thread::yield();
  }

  void serve() {
    for (uint64_t seen = 0;;) {
      for (int spins = 0; calls_.load(std::memory_order_relaxed) == seen && spins < kSpins; ++spins) pause();
      Job* job = nullptr;
      {
        std::unique_lock lock(mutex_);
        wake_.wait(lock, [&] { return calls_.load() != seen; });
        if (ending_) return;
        seen = calls_.load();
        job = job_;
        if (job != nullptr) inside_.fetch_add(1);
      }
      if (job == nullptr) continue;
      job->work();
      inside_.fetch_sub(1, std::memory_order_release);
    }
  }
};

}  // namespace

ParallelFor thread_pool(int threads) {
  const int cores = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  auto pool = std::make_shared<ThreadPool>(threads > 0 ? threads : cores);
  return [pool](int64_t count, const Body& body) { pool->run(count, body); };
}

}  // namespace tilepilot::runtime
