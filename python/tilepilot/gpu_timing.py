"""Times of calls that run on a GPU, in milliseconds: by events, by CUPTI's activity records, by replays of a CUDA graph.
Each call finds the GPU's cache full of other data."""

import sys

from tilepilot.errors import warn

_FLUSH_BYTES = 256 << 20  # more than any cache holds


def is_used():
    """Whether this process has work for a GPU."""
    return "torch" in sys.modules and sys.modules["torch"].cuda.is_initialized()


def clock(fn, backend="event"):
    """A function that times so many calls of `fn`."""
    if backend not in _BACKENDS:
        raise ValueError(f"backend is one of {', '.join(_BACKENDS)}, not {backend!r}")
    return _BACKENDS[backend](fn)


def _flush():
    """A function that fills the cache."""
    import torch
    data = torch.empty(_FLUSH_BYTES // 4, dtype=torch.int32, device="cuda")
    return data.zero_


def _by_events(fn, calls):
    import torch
    flush = _flush()
    pairs = [(torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)) for _ in range(calls)]
    for begin, end in pairs:
        flush()
        begin.record()
        fn()
        end.record()
    torch.cuda.synchronize()
    return [begin.elapsed_time(end) for begin, end in pairs]


def _by_activity(fn, calls):
    """What the GPU itself was at work for: the kernels and copies of each call, without what lies between them."""
    durations = _recorded(fn, calls)
    if not durations or len(durations) % calls:
        why = "CUPTI records nothing here" if not durations else "the calls do not run equally many kernels"
        warn(f"{why}: the times are those of events")
        return _by_events(fn, calls)
    share = len(durations) // calls  # the first of them is the flush
    return [sum(durations[first + 1:first + share]) for first in range(0, len(durations), share)]


def _recorded(fn, calls):
    """The milliseconds of all that the GPU did for `calls` flushes and calls, in order."""
    import torch
    from torch.profiler import ProfilerActivity, profile
    flush = _flush()
    torch.cuda.synchronize()
    with profile(activities=[ProfilerActivity.CUDA]) as profiler:
        for _ in range(calls):
            flush()
            fn()
        torch.cuda.synchronize()
    on_gpu = [event for event in profiler.events() if event.device_type == torch.autograd.DeviceType.CUDA]
    on_gpu.sort(key=lambda event: event.time_range.start)
    return [event.time_range.elapsed_us() / 1e3 for event in on_gpu]


def _by_graph(fn):
    """A clock of replays, which cost the host nothing."""
    import torch
    side, graph = torch.cuda.Stream(), torch.cuda.CUDAGraph()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        fn()
    torch.cuda.current_stream().wait_stream(side)
    with torch.cuda.graph(graph, stream=side):
        fn()
    return lambda calls: _by_events(graph.replay, calls)


_BACKENDS = {
    "event": lambda fn: lambda calls: _by_events(fn, calls),
    "cupti": lambda fn: lambda calls: _by_activity(fn, calls),
    "cudagraph": _by_graph,
}
