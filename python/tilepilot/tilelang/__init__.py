"""The tile language, under the names of `tilelang`: programs in this process's Python, compiled by TilePilot."""

from tilepilot import _core
from tilepilot.tilelang import autotuner, language, profiler
from tilepilot.tilelang.autotuner import AutoTuner, autotune
from tilepilot.tilelang.jit import JITFunction, JITKernel, compile, jit, lower
from tilepilot.tilelang.profiler import Profiler, TensorSupplyType, do_bench

__version__ = "0.1.13"
_names = _core.module("tilelang")


def __getattr__(name):
    return getattr(_names, name)
