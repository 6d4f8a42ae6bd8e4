// Work of a stream as a CUDA graph: captured once, launched as often as wanted ("CUDA Graphs", CUDA C++ Programming
// Guide).
#pragma once

#include <functional>

#include "compiler/runtime/cuda/driver.h"

namespace tilepilot::runtime::cuda {

class Graph {
 public:
  // What `work` gives to `stream`, none of which runs yet. @pre `stream` is not the default one, and idle. Errors:
  // those of `work`; device_failed if the stream cannot be captured (`work` waits for the GPU, say).
  static Result<Graph> capture(std::shared_ptr<const Device> device, Stream stream,
                               const std::function<Status()>& work);
  ~Graph() { release(); }
  Graph(Graph&& other) noexcept { *this = std::move(other); }
  Graph& operator=(Graph&& other) noexcept;

  // Asynchronous.
  Status launch(Stream stream) const;

 private:
  explicit Graph(std::shared_ptr<const Device> device) : device_(std::move(device)) {}
  void release();

  std::shared_ptr<const Device> device_;
  void* graph_ = nullptr;
  void* executable_ = nullptr;
};

}  // namespace tilepilot::runtime::cuda
