#include "eval/worker/graph_replays.h"

#include "compiler/runtime/cuda/graph.h"
#include "eval/host/edge.h"
#include "eval/torch/gpu.h"

namespace tilepilot::eval {

Result<double> run_graph_replays(const GraphReplays& replays) {
  // Libraries load, workspaces and the memory of results come from the GPU.
  for (int i = 0; i < kGraphWarmUps; ++i) TRY(replays.call());
  const auto replay = TRY(replays.capture(replays.call));
  for (int i = 0; i < kGraphReplays; ++i) {
    TRY(guarded("", {}, [&] { replays.stopwatch.start(); }));
    TRY(replay());
    TRY(guarded("", {}, [&] { replays.stopwatch.stop(); }));
  }
  return replays.stopwatch.read() / kGraphReplays;
}

// From the capture to the last replay nothing is allocated: what the captured call freed, it still writes to.
Result<double> replay_on_gpu(const std::shared_ptr<const runtime::cuda::Device>& gpu, c10::Device device,
                             const GraphReplays::Step& call) {
  std::unique_ptr<OtherStream> other;
  std::unique_ptr<Stopwatch> stopwatch;
  TRY(guarded("", {}, [&] {
    other = std::make_unique<OtherStream>();
    stopwatch = stopwatch_for(device);
  }));
  const runtime::cuda::Stream stream = current_stream();
  if (stream == nullptr)
    return make_error(DiagnosticKind::device_failed, {}, "this LibTorch does not say which stream it launches on");
  const auto capture = [&](const GraphReplays::Step& work) -> Result<GraphReplays::Step> {
    TRY(gpu->wait(stream));
    auto graph = std::make_shared<const runtime::cuda::Graph>(TRY(runtime::cuda::Graph::capture(gpu, stream, work)));
    return GraphReplays::Step([graph = std::move(graph), stream] { return graph->launch(stream); });
  };
  return run_graph_replays({*stopwatch, call, capture});
}

}  // namespace tilepilot::eval
