"""The backend `tilepilot` of torch.compile.

Dynamo guards what a graph was traced for: shapes (but for those that it passes as numbers), dtypes, devices, strides,
modes of layers. For each set of these numbers a graph has a version, which is made at the first call that could use
it."""

import dataclasses
import logging
import os
import threading

import torch

from tilepilot.errors import TilePilotError, warn
from tilepilot.graphs.capture import NotCaptured, is_gradient_mode, is_number
from tilepilot.graphs.checkpointing import restore_checkpoints
from tilepilot.graphs.devices import is_autocast_on
from tilepilot.graphs.generation import Options, find_command
from tilepilot.graphs.reports import RegionReport
from tilepilot.graphs.versions import version_of
from tilepilot.locks import ForkSafeLock

_log = logging.getLogger("tilepilot")
_reports = threading.local()


def tilepilot_backend(traced, example_inputs, *, mode=None, options=None):
    """What torch.compile calls with a graph. `mode="background"` runs eager's operators until a program is there."""
    chosen = chosen_options(mode, options)
    find_command(chosen)  # raises now, not at the first call
    return CompiledGraph(traced, chosen)


def chosen_options(mode, options):
    """Options of torch.compile or `optimize`; raises for what is none."""
    if mode not in (None, "default", "background"):
        raise ValueError(f'the backend `tilepilot` has the modes "default" and "background", not {mode!r}')
    known = {field.name: field for field in dataclasses.fields(Options)}
    for name, value in (options or {}).items():
        if name not in known:
            raise TypeError(f"the backend `tilepilot` has no option `{name}`: its options are "
                            f"{', '.join(sorted(known))}")
        default = known[name].default
        wanted = {float: (int, float), type(None): (str, os.PathLike, type(None))}.get(type(default), type(default))
        if not isinstance(value, wanted):
            raise TypeError(f"the option `{name}` of the backend `tilepilot` takes no `{type(value).__name__}`")
    chosen = Options(**(options or {}))
    chosen.background |= mode == "background"
    return chosen


class CompiledGraph:
    def __init__(self, traced, options):
        restore_checkpoints(traced)
        self._traced, self._options = traced, options
        self._versions, self._told = {}, False
        self._enables_gradients = any(node.args[0] for node in traced.graph.nodes if is_gradient_mode(node))
        self._lock = ForkSafeLock()
        placeholders = [node for node in traced.graph.nodes if node.op == "placeholder"]
        self._numbers = [index for index, node in enumerate(placeholders) if is_number(node)]
        self._reports = getattr(_reports, "reports", None)

    def __call__(self, *arguments):
        key = tuple([value.item() if isinstance(value := arguments[index], torch.Tensor) else value
                     for index in self._numbers])
        version = self._versions.get(key)
        if version is None:
            version = self._new_version(key, arguments)
        return version(*arguments)

    def _new_version(self, key, arguments):
        eager = self._traced.forward
        if not self._may_run_programs(arguments):
            return eager  # this time
        with self._lock:
            if (version := self._versions.get(key)) is not None:
                return version
            if len(self._versions) >= self._options.versions:
                self._tell_that_there_are_many()
                return eager
            # A text that grows by a token a call has new sizes in each: all of them together cost less than two versions.
            minutes = self._options.minutes / 2 ** len(self._versions)
            if not self._options.background:
                self._versions[key] = self._made(arguments, minutes)
                return self._versions[key]
            self._versions[key] = eager
        kept = tuple(value if isinstance(value, torch.nn.Parameter) else _copied(value) for value in arguments)
        threading.Thread(target=self._make_behind, args=(key, kept, minutes), daemon=True, name="tilepilot").start()
        return eager

    def _make_behind(self, key, arguments, minutes):
        try:
            version = self._made(arguments, minutes)
        except TilePilotError as error:
            warn(f"torch's operators run: {error}")
            return
        with self._lock:
            if key in self._versions:
                self._versions[key] = version

    def _made(self, arguments, minutes):
        found, options = [], dataclasses.replace(self._options, minutes=minutes)
        try:
            with torch.inference_mode(False):
                ordinary = [_copied(value) if isinstance(value, torch.Tensor) and value.is_inference() else value
                            for value in arguments]
                made = version_of(self._traced, ordinary, options, found)
        except NotCaptured as error:
            found.append(RegionReport([], None, str(error)))
            made = None
        for report in found:
            _log.info("%s: %s", " ".join(report.operators[:6]) + (" ..." if len(report.operators) > 6 else ""),
                      report.why or f"{report.runs} runs, {report.speedup:.2f}x of eager")
        if self._reports is not None:
            self._reports.extend(found)
        return made or self._traced.forward

    def _may_run_programs(self, arguments):
        """Whether a call could use a program. Under autocast, and where a gradient is wanted, torch's operators run."""
        if is_autocast_on():
            return False
        return not (torch.is_grad_enabled() or self._enables_gradients) or not any(
            isinstance(value, torch.Tensor) and value.requires_grad for value in arguments)

    def _tell_that_there_are_many(self):
        if not self._told:
            self._told = True
            warn(f"a graph was called with more than {self._options.versions} sets of sizes: torch's operators run for "
                 "the others")


def _copied(value):
    return value.detach().clone() if isinstance(value, torch.Tensor) else value


class reported:
    """Collects what comes of the regions of graphs that are compiled in its block, on this thread."""

    def __enter__(self):
        _reports.reports = []
        return _reports.reports

    def __exit__(self, *_):
        _reports.reports = None
