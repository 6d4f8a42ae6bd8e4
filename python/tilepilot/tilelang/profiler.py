"""Running and timing kernels on inputs that are made for them. On the processor times are of the wall clock: a call
returns when its work is done. On a GPU they are as gpu_timing.py has them."""

import enum
import time

from tilepilot import gpu_timing


class TensorSupplyType(enum.Enum):
    Integer = 1
    Uniform = 2
    Normal = 3
    Randn = 4
    Zero = 5
    One = 6
    Auto = 7


class KernelParam:
    """A parameter of a kernel. Extents that are known only at run time are text."""

    def __init__(self, name, dtype, shape):
        self.name, self.dtype, self.shape = name, dtype, shape

    def torch_dtype(self):
        import torch
        return getattr(torch, self.dtype)

    def is_scalar(self):
        return self.shape is None

    def __repr__(self):
        return f"KernelParam({self.name!r}, {self.dtype!r}, {self.shape!r})"


def _supply(param, kind, device="cpu"):
    import torch
    with torch.device(device):
        return _made(param, kind)


def _made(param, kind):
    import torch
    if param.is_scalar():
        raise ValueError(f"`{param.name}` is a number: give the inputs yourself, in input_tensors")
    for extent in param.shape:
        if not isinstance(extent, int):
            raise ValueError(f"the extent `{extent}` of `{param.name}` is known only at run time: "
                             "give the inputs yourself, in input_tensors")
    dtype = param.torch_dtype()
    if kind is TensorSupplyType.Zero:
        return torch.zeros(param.shape, dtype=dtype)
    if kind is TensorSupplyType.One:
        return torch.ones(param.shape, dtype=dtype)
    if not dtype.is_floating_point:
        low, high = (0, 2) if dtype is torch.bool else (0, 3) if not dtype.is_signed else (-2, 3)
        return torch.randint(low, high, param.shape).to(dtype)
    if kind is TensorSupplyType.Integer:
        return torch.randint(-2, 3, param.shape).to(dtype)
    if kind in (TensorSupplyType.Normal, TensorSupplyType.Randn):
        return torch.randn(param.shape).to(dtype)
    return torch.empty(param.shape).uniform_(-1.0, 1.0).to(dtype)


def median(times):
    """Of an even number the lower one, as torch.median."""
    return sorted(times)[(len(times) - 1) // 2]


def _quantile(times, share):
    ordered = sorted(times)
    position = share * (len(ordered) - 1)
    below = int(position)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (position - below)


_SUMMARIES = {"min": min, "max": max, "mean": lambda times: sum(times) / len(times), "median": median}


def _milliseconds(fn):
    begin = time.perf_counter()
    fn()
    return (time.perf_counter() - begin) * 1000.0


def _times_on_processor(fn, warmup, rep, n_warmup, n_repeat, _backend):
    fn()
    estimate = max(_milliseconds(fn), 1e-6)
    for _ in range(n_warmup or max(1, int(warmup / estimate))):
        fn()
    return [_milliseconds(fn) for _ in range(n_repeat or max(1, int(rep / estimate)))]


def do_bench(fn, warmup=25, rep=100, _n_warmup=0, _n_repeat=0, quantiles=None, fast_flush=True, backend="event",
             return_mode="mean"):
    """Milliseconds of a call of `fn`, or as many quantiles of them as are asked for. `warmup` and `rep` are the
    milliseconds of calls that are not counted, and of those that are. `backend` says how a GPU is timed: by "event", by
    "cupti" (its kernels alone), by replays of a "cudagraph"."""
    if return_mode not in _SUMMARIES:
        raise ValueError(f"return_mode is one of {', '.join(_SUMMARIES)}, not {return_mode!r}")
    timed = gpu_timing.times if gpu_timing.is_used() else _times_on_processor
    times = timed(fn, warmup, rep, _n_warmup, _n_repeat, backend)
    if quantiles is None:
        return _SUMMARIES[return_mode](times)
    values = [_quantile(times, share) for share in quantiles]
    return values[0] if len(values) == 1 else values


class Profiler:
    """Runs a kernel on inputs that it makes."""

    def __init__(self, kernel, supply_type=TensorSupplyType.Auto):
        self.kernel = kernel
        self.supply_type = supply_type

    def _inputs(self):
        outputs = set(self.kernel.out_idx)
        device = self.kernel.device
        return [_supply(param, self.supply_type, device) for index, param in enumerate(self.kernel.params)
                if index not in outputs]

    def __call__(self, *args):
        return self.kernel(*args)

    def run_once(self, func=None):
        return (func or self.kernel)(*self._inputs())

    def do_bench(self, func=None, warmup=25, rep=100, n_warmup=0, n_repeat=0, input_tensors=None, backend="event",
                 quantiles=None, return_mode="mean"):
        inputs = self._inputs() if input_tensors is None else input_tensors
        call = func or self.kernel
        return do_bench(lambda: call(*inputs), warmup, rep, n_warmup, n_repeat, quantiles, backend=backend,
                        return_mode=return_mode)

    def assert_allclose(self, reference_program, input_tensors=None, atol=1e-2, rtol=1e-2, max_mismatched_ratio=0.01):
        """Raises AssertionError if more than that share of an output's elements differ from the reference's."""
        import torch
        inputs = self._inputs() if input_tensors is None else input_tensors
        expected, actual = _as_list(reference_program(*inputs)), _as_list(self.kernel(*inputs))
        if len(actual) != len(expected):
            raise AssertionError(f"the kernel gives {len(actual)} outputs, the reference {len(expected)}")
        for position, (got, want) in enumerate(zip(actual, expected)):
            if got.shape != want.shape:
                raise AssertionError(f"output {position} has shape {tuple(got.shape)}, the reference's "
                                     f"{tuple(want.shape)}")
            close = torch.isclose(got.float(), want.float(), rtol=rtol, atol=atol, equal_nan=True)
            share = 1.0 - close.float().mean().item() if close.numel() else 0.0
            if share > max_mismatched_ratio:
                raise AssertionError(f"{share:.2%} of output {position} differ from the reference, more than "
                                     f"{max_mismatched_ratio:.2%}")


def _as_list(outputs):
    if outputs is None:
        return []
    return list(outputs) if isinstance(outputs, (list, tuple)) else [outputs]
