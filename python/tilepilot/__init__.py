"""TilePilot: tile kernels, compiled in this process and called with torch's tensors.

`load` opens a program that `tilepilot generate` wrote, `optimize` and `torch.compile(backend="tilepilot")` have programs
written for a model; `tilepilot.tilelang` is the tile language."""

import os

from tilepilot import _core
from tilepilot.errors import ArgumentError, CompileError, TilePilotError, TilePilotWarning, ToolchainError

__all__ = ["ArgumentError", "CompileError", "TilePilotError", "TilePilotWarning", "ToolchainError", "load",
           "optimize", "set_num_threads"]

os.register_at_fork(before=_core.before_fork, after_in_parent=_core.after_fork_in_parent,
                    after_in_child=_core.after_fork_in_child)


def set_num_threads(count):
    """How many threads share the blocks of a kernel on the processor; 0: as many as torch uses."""
    if count < 0:
        raise ValueError(f"a number of threads is 0 or more, not {count}")
    _core.set_num_threads(count)


def load(path, *, strict=False, reference=None):
    """The module of a program that `tilepilot generate` wrote; its `ModelNew` is a `torch.nn.Module`.

    Calls that the program was not verified for (other shapes, dtypes, devices) run the reference model instead and
    say so once; with `strict` they raise. `reference` is the model's file, where it is not the one that the program's
    certificate names."""
    from tilepilot.loading import load as open_program  # imports torch
    return open_program(path, strict=strict, reference=reference)


def optimize(model, example_inputs, *, mode=None, **options):
    """The model with another call, which runs verified programs for what it computes of such inputs. All else is shared:
    weights, layers, hooks and mode.

    It is `torch.compile(model, backend="tilepilot")`, called once; `tilepilot_regions` says what came of each part of
    the model. `options` are the backend's: minutes, attempts, versions, inductor, command."""
    from tilepilot.graphs.optimize import optimize as optimized  # imports torch
    return optimized(model, example_inputs, mode, options)
