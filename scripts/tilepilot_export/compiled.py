"""A model under torch.compile, which runs the batches of calls that the judge asks for
(eval/worker/judge/timing/compiled_side.cpp). The judge owns the clock; on a GPU events are read here."""

import ctypes
import math
import os
import time

import torch

from tilepilot_export.errors import ExportError, first_line
from tilepilot_export.tensor_transfer import pack, unpack

WARM_SECONDS = 10  # of calls, at most
WARM_CALLS = 5  # compared with as many before
STABLE = 0.97  # of their time: then calls do not become faster
FLUSHED = 256 << 20  # bytes, several times a GPU's cache: as in eval/torch/stopwatch.cpp
AHEAD = 1.5  # of what the host needs for a call, the GPU is kept busy before it
MOST_FLUSHES = 8
IDLE_ANSWER = 50e-6  # seconds, and this
LARGE = 1 << 30  # bytes of a batch on a GPU: others may need what is free


def keep_freed_memory():
    """The C library gives no freed memory back to the system, as allocators that cache do: no call finds new pages."""
    trim_threshold, mmap_max, arena_max = -1, -4, -8
    libc = ctypes.CDLL(None)
    for parameter, value in ((mmap_max, 0), (trim_threshold, -1), (arena_max, 1)):
        libc.mallopt(parameter, value)


class Stopwatch:
    """Of calls on a GPU: between two events, on flushed caches, with what goes on in other streams.

    While the GPU flushes, the host gets ahead of it. Dynamo's guards and the launch of a graph may take the host longer
    than one flush lasts; the GPU would then wait for the host between the events.
    """

    def __init__(self):
        self.flushed = torch.empty(FLUSHED, dtype=torch.uint8, device="cuda")
        self.begin, self.end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        self.flushes = 1

    def flush(self):
        for _ in range(self.flushes):
            self.flushed.zero_()

    def expect(self, host_seconds):
        """Calls keep the host for so long."""
        self.flushes = 1
        self.timed(self.flush)
        _, flush = self.timed(self.flush)
        self.flushes = min(max(math.ceil(AHEAD * host_seconds / flush), 1), MOST_FLUSHES)

    def timed(self, call):
        self.flush()
        self.begin.record()
        result = call()
        self.end.record()
        self.end.synchronize()
        stopped = time.perf_counter()
        torch.cuda.synchronize()
        overtime = time.perf_counter() - stopped
        return result, self.begin.elapsed_time(self.end) * 1e-3 + (overtime if overtime > IDLE_ANSWER else 0)


class CompiledModel:
    def __init__(self, model, inputs, mode, device):
        """`inputs`: as get_inputs() gives them; the judge's tensors take the places of its tensors."""
        self.on_gpu = device != "cpu"
        self.device, self.model = device, model.to(device)
        leaves, self.spec = torch.utils._pytree.tree_flatten(list(inputs))
        self.leaves = [None if isinstance(leaf, torch.Tensor) else leaf for leaf in leaves]
        self.holes = [i for i, leaf in enumerate(leaves) if isinstance(leaf, torch.Tensor)]
        self.compiled = torch.compile(self.model) if mode == "default" else torch.compile(self.model, mode=mode)
        self.stopwatch = Stopwatch() if self.on_gpu else None
        self.rest()

    def rest(self, *_):
        large = self.on_gpu and sum(t.nbytes for t in getattr(self, "tensors", ())) > LARGE
        self.arguments, self.results, self.waiting, self.tensors = [], [], [], []
        if large:
            torch.cuda.empty_cache()

    def arguments_with(self, tensors):
        leaves = list(self.leaves)
        for place, tensor in zip(self.holes, tensors):
            leaves[place] = tensor
        return torch.utils._pytree.tree_unflatten(leaves, self.spec)

    def compile(self, body, tensors):
        """Compiles, and calls until calls become no faster."""
        begin = time.perf_counter()
        arguments = self.arguments_with(tensors)
        self.compiled(*arguments)
        self.synchronize()
        times, launching, warm = [], [], time.perf_counter()
        while time.perf_counter() - warm < WARM_SECONDS and not is_stable(times):
            start = time.perf_counter()
            self.compiled(*arguments)
            launching.append(time.perf_counter() - start)
            self.synchronize()
            times.append(time.perf_counter() - start)
        end_compilers()
        if self.stopwatch:
            self.stopwatch.expect(middle(launching[-WARM_CALLS:]))
        return {"seconds": time.perf_counter() - begin, "calls": len(times)}

    def synchronize(self):
        if self.on_gpu:
            torch.cuda.synchronize()

    def weights(self, body, tensors):
        state = self.model.state_dict(keep_vars=True)
        for name, tensor in zip(body["names"], tensors):
            state[name].copy_(tensor)

    def prepare(self, body, tensors):
        count = len(self.holes)
        self.tensors = tensors
        self.arguments = [self.arguments_with(tensors[i * count:(i + 1) * count]) for i in range(body["calls"])]
        torch.manual_seed(body["seed"])
        for _ in range(body["lead"]):
            self.results.append(self.kept(self.compiled(*self.arguments[len(self.results)])))
        self.synchronize()
        self.waiting = self.arguments[body["lead"]:]

    def go(self, *_):
        calls, self.waiting = self.waiting, []
        if self.on_gpu:
            return {"seconds": sum(self.timed_on_gpu(arguments) for arguments in calls)}
        compiled, results = self.compiled, self.results
        for arguments in calls:
            results.append(compiled(*arguments))

    def timed_on_gpu(self, arguments):
        result, seconds = self.stopwatch.timed(lambda: self.compiled(*arguments))
        self.results.append(self.kept(result))
        return seconds

    def kept(self, result):
        """A graph of the GPU writes its results into the same memory at each call."""
        copy = lambda leaf: leaf.clone() if isinstance(leaf, torch.Tensor) else leaf  # noqa: E731
        return torch.utils._pytree.tree_map(copy, result) if self.on_gpu else result

    def fetch(self, body, tensors):
        leaves, _ = torch.utils._pytree.tree_flatten(self.results[body["call"]])
        return [leaf for leaf in leaves if isinstance(leaf, torch.Tensor)]


def middle(numbers):
    return sorted(numbers)[len(numbers) // 2]


def is_stable(times):
    if len(times) < 2 * WARM_CALLS:
        return False
    return middle(times[-WARM_CALLS:]) > STABLE * middle(times[-2 * WARM_CALLS:-WARM_CALLS])


def end_compilers():
    """Inductor's processes have nothing left to do."""
    try:
        from torch._inductor.async_compile import shutdown_compile_workers
        shutdown_compile_workers()
    except Exception:  # another version of PyTorch's: they sleep
        pass


def reason_of(error):
    """What failed, in a line or two: of Inductor's long reports the beginning."""
    if isinstance(error, ExportError):
        return error.message
    return f"`{type(error).__name__}`: {first_line(error)}"


def answer(model, body, descriptors):
    operations = {name: getattr(model, name) for name in ("compile", "weights", "prepare", "go", "fetch", "rest")}
    tensors = unpack(body.get("tensors", []), descriptors, model.device)
    result = operations[body["op"]](body, tensors)
    if isinstance(result, list):
        description, files = pack(result)
        return {"tensors": description}, files
    return result or {}, []


def serve(wire, first, make_model):
    """Answers requests until the judge is gone; `first` has come already."""
    keep_freed_memory()
    model, request = None, first
    with torch.no_grad():
        while request is not None:
            files = []
            try:
                model = model or make_model()
                reply, files = answer(model, *request)
            except Exception as error:  # of the model, of Inductor, of a lack of memory: the judge tells it
                reply = {"failure": reason_of(error)}
            wire.send(reply, files)
            for file in files:
                os.close(file)
            request = wire.receive()
