"""Devices of graphs: which of them programs are written for, and what is asked of each in its own way."""

import time

import torch

from tilepilot.targets import target_of_gpu

_TURNS = 7  # of each side
_GPU_CALLS = 20  # of a turn: launches follow one another as in a model, so that the slower of processor and GPU counts


def device_of(node):
    """Where a node's first tensor lies; None: it has none."""
    value = node.meta.get("val")
    leaves = value if isinstance(value, (list, tuple)) else [value]
    return next((leaf.device for leaf in leaves if isinstance(leaf, torch.Tensor)), None)


def is_for_programs(device):
    return device.type == "cpu" or device.type == "cuda" and target_of_gpu(device.index or 0) is not None


def target_of(device):
    return "cpu" if device.type == "cpu" else target_of_gpu(device.index or 0)


def gpus_of(values):
    """Numbers of the GPUs whose random numbers a call with these values may draw."""
    return sorted({value.get_device() for value in values if isinstance(value, torch.Tensor) and value.is_cuda})


def is_autocast_on():
    """Whether operators may compute in another type than that of their arguments."""
    return torch.is_autocast_enabled("cpu") or torch.is_autocast_enabled("cuda")


def seconds_of_calls(device, *sides):
    """The least time of a call of each side, in turn; on a GPU of a call among others."""
    calls = _GPU_CALLS if device.type == "cuda" else 1
    least = [float("inf")] * len(sides)
    for _ in range(_TURNS):
        for index, side in enumerate(sides):
            _wait_for(device)
            begin = time.perf_counter()
            for _ in range(calls):
                side()
            _wait_for(device)
            least[index] = min(least[index], (time.perf_counter() - begin) / calls)
    return least


def _wait_for(device):
    if device.type == "cuda":
        torch.cuda.synchronize(device)
