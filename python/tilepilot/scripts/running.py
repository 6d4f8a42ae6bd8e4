"""What `python -m tilepilot` changes in a process before it runs a script, and in those that the script spawns: these
begin anew, and import the script again."""

import contextlib
import dataclasses
import os

from tilepilot import _core
from tilepilot.as_tilelang import answer_to_the_name
from tilepilot.scripts import limits


@dataclasses.dataclass(frozen=True)
class Settings:
    """As the command line says."""

    cpu: bool
    bench_time: float | None
    autotune_limit: int | None

    def begin(self):
        """A context in which scripts run."""
        answer_to_the_name()
        if self.bench_time is not None:
            limits.bench_ms = self.bench_time
        if self.autotune_limit is not None:
            limits.autotune_limit = self.autotune_limit
        _core.let_gradients_end()  # scripts call kernels inside functions of torch.autograd, and beside them
        _tell_spawned_processes(self)
        if not self.cpu:
            return contextlib.nullcontext()
        os.environ["TILEPILOT_TARGET"] = "cpu"  # whatever target the script names
        from tilepilot.on_processor import OnProcessor  # imports torch
        return OnProcessor()


class _BeginsWhenRead:
    """Unpickled, it makes the process one for scripts."""

    def __init__(self, settings):
        self._settings = settings

    def __reduce__(self):
        return _begin_spawned, (self._settings,)


_contexts = []  # of spawned processes, entered for as long as they live


def _begin_spawned(settings):
    _contexts.append(settings.begin())
    _contexts[-1].__enter__()


def _tell_spawned_processes(settings):
    """What multiprocessing sends to a new process is read there before the script is imported."""
    from multiprocessing import spawn
    real = spawn.get_preparation_data

    def preparation_data(name):
        return {**real(name), "tilepilot": _BeginsWhenRead(settings)}

    spawn.get_preparation_data = preparation_data
