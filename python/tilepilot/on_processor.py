"""Scripts that name the device `cuda`, on the processor: what they allocate or move there stays here."""

import torch
from torch.overrides import TorchFunctionMode


def _here(value):
    if isinstance(value, str) and value.split(":")[0] == "cuda":
        return "cpu"
    if isinstance(value, torch.device) and value.type == "cuda":
        return torch.device("cpu")
    return value


class OnProcessor(TorchFunctionMode):
    """While it is entered, torch's functions take `cuda` for the processor."""

    def __torch_function__(self, function, types, args=(), kwargs=None):
        if function is torch.Tensor.cuda:
            return args[0]
        kwargs = {name: _here(value) if name == "device" else value for name, value in (kwargs or {}).items()}
        if function is torch.Tensor.to:
            args = tuple(map(_here, args))
        return function(*args, **kwargs)
