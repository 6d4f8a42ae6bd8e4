"""Scripts that name the device `cuda`, on the processor: what they allocate or move there stays here, and `torch.cuda` is
the module that the command `tilepilot run` has for them (eval/host/modules/torch_cuda.py)."""

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


class OnProcessor(TorchFunctionMode):
    """While it is entered, torch's functions take `cuda` for the processor."""

    def __torch_function__(self, function, types, args=(), kwargs=None):
        if function is torch.Tensor.cuda:
            return args[0]
        kwargs = {name: _here(value) if name == "device" else value for name, value in (kwargs or {}).items()}
        if function is torch.Tensor.to:
            args = tuple(map(_here, args))
        return function(*args, **kwargs)

    def __enter__(self):
        stand_in = types.ModuleType("tilepilot.scripts.cuda_of_processor")
        shared_modules.run_text(stand_in, _core.embedded_modules()["torch.cuda"])
        imported = {"amp", "gpu", "time", "torch"}
        self._real = {}
        for name, value in vars(stand_in).items():
            if name.startswith("_") or name in imported | _KEPT:
                continue
            self._real[name] = getattr(torch.cuda, name, None)
            setattr(torch.cuda, name, value)
        self._generator, torch.Generator = torch.Generator, _Generator
        return super().__enter__()

    def __exit__(self, *exception):
        for name, value in self._real.items():
            setattr(torch.cuda, name, value)
        torch.Generator = self._generator
        return super().__exit__(*exception)
