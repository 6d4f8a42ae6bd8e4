"""How long a call takes, on the processor and on a GPU."""

import time

import torch


def sample(call, samples):
    """Median and quartiles in microseconds; a sample is as many calls as take two milliseconds."""
    begin = time.perf_counter()
    call(0), call(1)
    calls = max(1, int(2e-3 * 2 / max(time.perf_counter() - begin, 1e-7)))
    times = []
    for _ in range(samples):
        begin = time.perf_counter()
        for i in range(calls):
            call(i)
        times.append((time.perf_counter() - begin) / calls * 1e6)
    return summary(times)


def sample_on_gpu(call, samples):
    """The same by the GPU's own events, with its caches flushed before each call (eval/torch/stopwatch.cpp)."""
    flushed = torch.empty(256 << 20, dtype=torch.uint8, device="cuda")
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))

    def timed(i):
        flushed.zero_()
        begin.record()
        call(i)
        end.record()
        torch.cuda.synchronize()
        return begin.elapsed_time(end) * 1e3

    timed(0)
    calls = max(1, min(100, int(12e3 / max(timed(1), 1))))
    return summary([sum(timed(i) for i in range(calls)) / calls for _ in range(samples)])


def summary(times):
    samples = len(times)
    times.sort()
    return {"median_us": times[samples // 2], "low_us": times[samples // 4], "high_us": times[samples * 3 // 4],
            "samples": samples}
