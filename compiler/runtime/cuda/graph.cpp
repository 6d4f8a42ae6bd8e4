#include "compiler/runtime/cuda/graph.h"

#include <utility>

#include "compiler/runtime/cuda/driver_functions.h"

namespace tilepilot::runtime::cuda {
namespace {

// Others, LibTorch's allocator among them, may do what a stricter mode forbids while something is captured.
constexpr int kRelaxed = 2;

}  // namespace

Result<Graph> Graph::capture(std::shared_ptr<const Device> device, Stream stream, const std::function<Status()>& work) {
  TRY(device->use());
  const DriverFunctions& call = *device->driver_;
  Graph graph(device);
  TRY(call.check("cuStreamBeginCapture", call.begin_capture(stream, kRelaxed)));
  Status worked = work();
  // In any case: else the stream stays captured.
  const int ended = call.end_capture(stream, &graph.graph_);
  if (!worked.ok()) return std::move(worked).take_error();
  TRY(call.check("cuStreamEndCapture", ended));
  TRY(call.check("cuGraphInstantiate", call.instantiate_graph(&graph.executable_, graph.graph_, 0)));
  return graph;
}

Graph& Graph::operator=(Graph&& other) noexcept {
  std::swap(device_, other.device_);
  std::swap(graph_, other.graph_);
  std::swap(executable_, other.executable_);
  return *this;
}

Status Graph::launch(Stream stream) const {
  return device_->driver_->check("cuGraphLaunch", device_->driver_->launch_graph(executable_, stream));
}

void Graph::release() {
  if (!device_ || !device_->use().ok()) return;
  if (executable_ != nullptr) device_->driver_->destroy_executable(executable_);
  if (graph_ != nullptr) device_->driver_->destroy_graph(graph_);
}

}  // namespace tilepilot::runtime::cuda
