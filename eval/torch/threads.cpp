#include "eval/torch/threads.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <atomic>

namespace tilepilot::eval {

#ifdef _OPENMP

namespace {

// More than one, so that a thread that starts late or is interrupted does not hold up the others.
constexpr int64_t kPiecesPerThread = 8;

}  // namespace

runtime::ParallelFor libtorch_threads() {
  return [](int64_t count, const std::function<void(int64_t, int64_t)>& body) {
    const int64_t threads = std::min<int64_t>(at::get_num_threads(), count);
    if (threads <= 1) return body(0, count);
    const int64_t piece = std::max<int64_t>(1, count / (threads * kPiecesPerThread));
    std::atomic<int64_t> next = 0;
    at::parallel_for(0, threads, 1, [&](int64_t, int64_t) {
      for (int64_t begin; (begin = next.fetch_add(piece)) < count;) body(begin, std::min(begin + piece, count));
    });
  };
}

#else

runtime::ParallelFor libtorch_threads() { return runtime::thread_pool(at::get_num_threads()); }

#endif

}  // namespace tilepilot::eval
