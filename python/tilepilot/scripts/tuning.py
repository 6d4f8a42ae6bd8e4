"""`_tilepilot_tuning`: what the tuner and the carver ask the compiler."""

import concurrent.futures
import inspect
import os

from tilepilot import _core
from tilepilot.errors import TilePilotError

_native = _core.module("_tilepilot_tuning")


def _program(value):
    """A kernel of the package as the compiler knows it."""
    kernel = getattr(value, "_native", None)
    return kernel.value if isinstance(kernel, _core.Kernel) else value


def hardware(device):
    return _native.hardware(device)


def estimate(program, device):
    return _native.estimate(_program(program), device)


def workload(program, device):
    return _native.workload(_program(program), device)


def recommend(kind, problem, device, count):
    return _native.recommend(kind, problem, device, count)


def program_text(kernel):
    return kernel._native.script()


def source_text(function):
    """"" where it has none."""
    try:
        return inspect.getsource(inspect.unwrap(function))
    except (OSError, TypeError):
        return ""


def compile_all(kernels):
    """For each None, or why it cannot be compiled."""
    def reason(kernel):
        try:
            kernel._native.compile()
        except TilePilotError as error:
            return str(error)

    if len(kernels) < 2:
        return list(map(reason, kernels))
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as threads:
        return list(threads.map(reason, kernels))
