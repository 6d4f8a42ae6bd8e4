"""Scripts that name the device `cuda`, on the processor: what they allocate or move there stays here, and parts of torch
are the modules that the command `tilepilot run` has for them (eval/host/modules)."""

import importlib
import types

import torch
from torch.overrides import TorchFunctionMode

from tilepilot import _core, shared_modules

# Of torch.cuda these serve the processor as they are; others of them call what would be put in their place.
_KEPT = {"init", "is_initialized", "manual_seed", "manual_seed_all"}


def _here(value):
    if isinstance(value, str) and value.split(":")[0] == "cuda":
        return "cpu"
    if isinstance(value, torch.device) and value.type == "cuda":
        return torch.device("cpu")
    return value


class _Generator(torch.Generator):
    def __new__(cls, device="cpu"):
        return super().__new__(cls, _here(device))


def _stand_ins():
    """Modules of torch, names in them, and what they are for the processor."""
    texts = _core.embedded_modules()
    for name in ("torch.cuda", "torch.profiler"):
        stand_in = types.ModuleType(f"tilepilot.scripts.{name}")
        shared_modules.run_text(stand_in, texts[name])
        for member, value in vars(stand_in).items():
            if not (member.startswith("_") or isinstance(value, types.ModuleType) or member in _KEPT):
                yield importlib.import_module(name), member, value
    yield torch, "Generator", _Generator
    # All random numbers are the processor's.
    yield torch.cuda, "get_rng_state", lambda device=None: torch.get_rng_state()
    yield torch.cuda, "set_rng_state", lambda state, device=None: torch.set_rng_state(state)


class OnProcessor(TorchFunctionMode):
    """While it is entered, torch's functions take `cuda` for the processor."""

    def __torch_function__(self, function, types, args=(), kwargs=None):
        if function in (torch.Tensor.cuda, torch.Tensor.pin_memory):
            return args[0]
        kwargs = {name: _here(value) if name == "device" else value for name, value in (kwargs or {}).items()
                  if name != "pin_memory"}
        if function is torch.Tensor.to:
            args = tuple(map(_here, args))
        return function(*args, **kwargs)

    def __enter__(self):
        self._real = []
        for module, name, value in _stand_ins():
            self._real.append((module, name, getattr(module, name, None)))
            setattr(module, name, value)
        return super().__enter__()

    def __exit__(self, *exception):
        for module, name, value in self._real:
            setattr(module, name, value)
        return super().__exit__(*exception)
