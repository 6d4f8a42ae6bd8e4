"""`_tilepilot_limits`: what bounds measurements and tuning, and what is kept of them: in this process, what was measured."""

import importlib.util
import math

from tilepilot import _core
from tilepilot.errors import warn
from tilepilot.scripts import device as gpu
from tilepilot.targets import target_of_gpu

stages_only = False
bench_ms = math.inf  # of one benchmark, which makes at least one call
autotune_limit = 1 << 30  # configurations
compile_seconds = _core.compile_seconds

_records = {}


class _Installed:
    """Packages that scripts can import."""

    def __contains__(self, name):
        return importlib.util.find_spec(name) is not None


installed = _Installed()


def announce(message, hint=""):
    warn(f"{message}\nhint: {hint}" if hint else message)


def find_tuning(key):
    return _records.get(key)


def keep_tuning(key, record):
    _records[key] = record


def begin_trial(seconds, key, record, message):
    """A kernel that hangs is not ended here."""


def end_trial():
    pass


def begin_anew(key, record, message):
    pass


def _architecture():
    """"sm_80" or "sm_90a"; "" on the processor."""
    if not gpu.is_gpu:
        return ""
    import torch
    return (target_of_gpu(torch.cuda.current_device()) or "").partition(":")[2]


def __getattr__(name):
    if name == "architecture":
        return _architecture()
    if name in ("device", "identity"):
        return gpu.name
    raise AttributeError(name)
