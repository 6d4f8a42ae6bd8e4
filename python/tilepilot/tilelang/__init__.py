"""The tile language, under the names of `tilelang`: programs in this process's Python, compiled by TilePilot."""

import importlib

from tilepilot import _core, shared_modules
from tilepilot.tilelang import language
from tilepilot.tilelang.jit import JITFunction, JITKernel, compile, jit, lower, par_compile

shared_modules.answer()

__version__ = "0.1.13"
_names = _core.module("tilelang")
# Names that live in modules which import torch.
_MOVED = {
    "AutoTuner": "autotuner", "autotune": "autotuner", "set_autotune_inputs": "autotuner", "Profiler": "profiler",
    "do_bench": "profiler", "TensorSupplyType": "utils.tensor", "KernelParam": "engine.param",
}


def __getattr__(name):
    if name in _MOVED:
        return getattr(importlib.import_module(f"{__name__}.{_MOVED[name]}"), name)
    if name == "tvm":
        return shared_modules.language_module(name)
    if name == "env" or shared_modules.has(f"tilelang.{name}"):
        return importlib.import_module(f"{__name__}.{name}")
    return getattr(_names, name)
