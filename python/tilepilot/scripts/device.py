"""`_tilepilot_device`: where tensors of scripts are, and how calls are timed there."""

import contextlib
import sys

from tilepilot import gpu_timing
from tilepilot.targets import default_device

_places = []  # of `placed`, innermost last


@contextlib.contextmanager
def placed(device):
    """Tensors that are made inside are there."""
    _places.append(device)
    try:
        yield
    finally:
        _places.pop()


def clock(fn, backend):
    """A function that times so many calls, in milliseconds; None: those that ask have the time of the wall clock."""
    return gpu_timing.clock(fn, backend) if default_device() == "cuda" and gpu_timing.is_used() else None


def _properties():
    import torch
    return torch.cuda.get_device_properties(torch.cuda.current_device())


# Where there is no GPU, that which programs are written for.
_FACTS = {
    "is_gpu": lambda: default_device() == "cuda",
    "torch_device": lambda: _places[-1] if _places else default_device(),
    "name": lambda: _properties().name if default_device() == "cuda" else "TilePilot CPU",
    "major": lambda: _properties().major if default_device() == "cuda" else 9,
    "minor": lambda: _properties().minor if default_device() == "cuda" else 0,
    "multiprocessors": lambda: (_properties().multi_processor_count if default_device() == "cuda"
                                else sys.modules["torch"].get_num_threads()),
}


def __getattr__(name):
    if name in _FACTS:
        return _FACTS[name]()
    raise AttributeError(name)
