# `tilelang.profiler` for scripts. Times are of the wall clock, less what compiling kernels took: on the processor a
# call returns when its work is done, and caches are not flushed between calls, which would cost more than most kernels.
# On a GPU they are those of events around a call that finds the cache full of other data; `backend="cupti"`: those of
# the kernels alone.
import functools
import time

import _tilepilot_device as gpu
import _tilepilot_limits as limits
import torch
from tilelang.engine.param import KernelParam
from tilelang.utils.tensor import TensorSupplyType, get_tensor_supply, is_float8_dtype, torch_assert_close

BACKENDS = ("event", "cupti", "cudagraph")
MORE_TIME = "`--bench-time MS` before the script gives it more"
# Calls whose mean tells how many to make.
ESTIMATE_CALLS = 5
# What stands in a GPU's cache before each call: more than any cache holds. While it is written, the host gets ahead: so
# often that calls whose launching takes long are not timed for it.
FLUSH, FLUSH_BYTES = {}, 256 << 20
FLUSH_MS, MOST_FLUSHES = 0.08, 8


def median(times):
    """Of an even number the lower one, as torch.median."""
    return sorted(times)[(len(times) - 1) // 2]


SUMMARIES = {"min": min, "max": max, "mean": lambda times: sum(times) / len(times), "median": median}


def quantile(times, share):
    ordered = sorted(times)
    position = share * (len(ordered) - 1)
    below = int(position)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (position - below)


def summarize(times, quantiles, return_mode):
    if quantiles is None:
        return SUMMARIES[return_mode](times)
    values = [quantile(times, share) for share in quantiles]
    return values[0] if len(values) == 1 else values


def milliseconds():
    return (time.perf_counter() - limits.compile_seconds()) * 1000.0


def flush():
    FLUSH.setdefault("data", torch.empty(FLUSH_BYTES // 4, dtype=torch.int32, device=gpu.torch_device)).zero_()


def flushes_of(fn):
    """How often the cache is written, so that the host is done with a call when the GPU begins with it."""
    torch.cuda.synchronize()
    begin = milliseconds()
    fn()
    host = milliseconds() - begin
    torch.cuda.synchronize()
    return min(MOST_FLUSHES, 1 + int(1.5 * host / FLUSH_MS))


def kernel_milliseconds(fn, count):
    """What the kernels of each of `count` calls take, by CUPTI; None if it may not look, or calls differ."""
    def calls():
        for _ in range(count):
            flush()
            fn()

    flush()
    before, own = len(gpu.kernel_times(flush)), len(gpu.kernel_times(fn))
    times = [time for _, time in gpu.kernel_times(calls)]
    step = before + own
    if own == 0 or len(times) != count * step:
        return None
    return [sum(times[first + before:first + step]) for first in range(0, count * step, step)]


def timed(fn, flushes=1):
    if gpu.is_gpu:
        return timed_on_gpu(fn, flushes)
    begin = milliseconds()
    fn()
    return milliseconds() - begin


def timed_on_gpu(fn, flushes):
    for _ in range(flushes):
        flush()
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    compiling = limits.compile_seconds()
    begin.record()
    fn()
    end.record()
    end.synchronize()
    return max(0.0, begin.elapsed_time(end) - (limits.compile_seconds() - compiling) * 1000.0)


# Of devices that have a clock for each backend: clock(fn, backend) gives a function that times so many calls, or None.
own_clock = getattr(gpu, "clock", lambda fn, backend: None)


def times_of(fn, calls, backend, flushes):
    clock = own_clock(fn, backend)
    if clock is not None:
        return clock(calls)
    if gpu.is_gpu and backend == "cupti":
        times = kernel_milliseconds(fn, calls)
        if times is not None:
            return times
        limits.announce("`do_bench` times by events: CUPTI tells nothing of these calls", "")
    return [timed(fn, flushes) for _ in range(calls)]


def within_limit(n_warmup, n_repeat, estimate):
    """As many calls of each kind as the limit of the run allows, and at least one."""
    share = limits.bench_ms / max((n_warmup + n_repeat) * estimate, 1e-9)
    if share >= 1:
        return n_warmup, n_repeat
    fewer = max(1, int(n_warmup * share)), max(1, int(n_repeat * share))
    if fewer != (n_warmup, n_repeat):
        limits.announce(f"`do_bench` makes {fewer[1]} of {n_repeat} calls: a benchmark has {limits.bench_ms:g} ms here",
                        MORE_TIME)
    return fewer


def do_bench(fn, warmup=25, rep=100, _n_warmup=0, _n_repeat=0, quantiles=None, fast_flush=True, backend="event",
             return_mode="mean", device=None, cache_size=256, early_stop_baseline=None):
    """Milliseconds of a call of `fn`, or as many quantiles of them as are asked for."""
    assert return_mode in SUMMARIES, f"Invalid return_mode: {return_mode}"
    if backend not in BACKENDS:
        raise ValueError(f"Unknown profiler backend: {backend}")
    first = timed(fn)
    if first >= limits.bench_ms:
        limits.announce(f"`do_bench` makes one call only: a benchmark has {limits.bench_ms:g} ms here", MORE_TIME)
        return summarize([first], quantiles, return_mode)
    flushes = flushes_of(fn) if gpu.is_gpu else 1
    estimate = sum(timed(fn, flushes) for _ in range(ESTIMATE_CALLS)) / ESTIMATE_CALLS
    if early_stop_baseline is not None and estimate > early_stop_baseline:
        return summarize([estimate], quantiles, return_mode)
    n_warmup = _n_warmup if _n_warmup > 0 else max(1, int(warmup / max(estimate, 1e-9)))
    n_repeat = _n_repeat if _n_repeat > 0 else max(1, int(rep / max(estimate, 1e-9)))
    n_warmup, n_repeat = within_limit(n_warmup, n_repeat, estimate)
    for _ in range(n_warmup):
        fn()
    return summarize(times_of(fn, n_repeat, backend, flushes), quantiles, return_mode)


def as_list(outputs):
    if outputs is None:
        return []
    return list(outputs) if isinstance(outputs, (list, tuple)) else [outputs]


def readable(tensor):
    return tensor.to(torch.float32) if is_float8_dtype(tensor.dtype) else tensor


class Profiler:
    """Runs a kernel on inputs that it makes."""

    def __init__(self, params, result_idx, supply_type=TensorSupplyType.Auto, adapter=None):
        self.params = params
        self.result_idx = [result_idx] if isinstance(result_idx, int) else list(result_idx or [])
        self.result_idx = [index + len(params) if index < 0 else index for index in self.result_idx]
        self.supply_type = supply_type
        self.supply = get_tensor_supply(supply_type)
        self.adapter = adapter

    def with_default_adapter(self, adapter):
        self.adapter = adapter
        return self

    @property
    def func(self):
        assert self.adapter is not None, "adapter should be provided"
        return self.adapter

    def __call__(self, *args, **kwargs):
        return self.func(*args, **kwargs)

    def _get_params(self, with_output=False):
        return [param for index, param in enumerate(self.params) if with_output or index not in self.result_idx]

    def _get_inputs(self, with_output=False, dynamic_symbolic_constraints=None):
        return [self.supply(with_extents(param, dynamic_symbolic_constraints or {}))
                for param in self._get_params(with_output)]

    def _outputs(self, reference_program, input_tensors):
        """Of the kernel and of the reference, on the same inputs."""
        inputs = self._get_inputs() if input_tensors is None else input_tensors
        expected = as_list(reference_program(*inputs))
        actual = as_list(self.func(*inputs))
        assert len(actual) == len(expected), f"the kernel gives {len(actual)} outputs, the reference {len(expected)}"
        return actual, expected

    def assert_allclose(self, reference_program, input_tensors=None, atol=1e-2, rtol=1e-2, max_mismatched_ratio=0.01):
        for actual, expected in zip(*self._outputs(reference_program, input_tensors)):
            if actual is not None and expected is not None:
                torch_assert_close(readable(actual), readable(expected), rtol=rtol, atol=atol,
                                   max_mismatched_ratio=max_mismatched_ratio, base_name="tilelang", ref_name="ref")

    def manual_assert_close(self, reference_program, input_tensors=None, manual_check_prog=None):
        manual_check_prog(*self._outputs(reference_program, input_tensors))

    def assert_consistent(self, repeat=10):
        inputs = self._get_inputs()
        expected = as_list(self.func(*inputs))
        for _ in range(repeat):
            for again, once in zip(as_list(self.func(*inputs)), expected):
                assert torch.allclose(again, once), ["result is not consistent", again, once]

    def run_once(self, func=None):
        return (func or self.func)(*self._get_inputs())

    def do_bench(self, func=None, warmup=25, rep=100, n_warmup=0, n_repeat=0, input_tensors=None, backend="event",
                 quantiles=None, return_mode="mean", dynamic_symbolic_constraints=None, device=None,
                 early_stop_baseline=None):
        inputs = input_tensors
        if inputs is None:
            inputs = self._get_inputs(dynamic_symbolic_constraints=dynamic_symbolic_constraints)
        return do_bench(functools.partial(func or self.func, *inputs), warmup=warmup, rep=rep, _n_warmup=n_warmup,
                        _n_repeat=n_repeat, quantiles=quantiles, backend=backend, return_mode=return_mode,
                        device=device, early_stop_baseline=early_stop_baseline)


def with_extents(param, extents):
    """The parameter with its symbols' values put in."""
    if not extents:
        return param
    for extent in param.shape:
        if not isinstance(extent, int) and extent not in extents:
            raise ValueError(f"Dynamic symbolic variable '{extent}' not found in constraints. "
                             f"Available constraints: {list(extents.keys())}")
    return KernelParam(param.dtype, [extents.get(extent, extent) for extent in param.shape])


def profiler_of(kernel, tensor_supply_type=TensorSupplyType.Auto):
    """What `kernel.get_profiler` gives."""
    return Profiler(kernel.params, kernel.out_idx, tensor_supply_type, kernel)
