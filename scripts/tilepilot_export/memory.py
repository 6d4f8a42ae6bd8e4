"""Whether the model's weights fit into the memory there is: told before they are made."""

import contextlib

import torch
from torch.nn.modules.module import register_module_parameter_registration_hook

from .errors import ExportError
from .probe import fake_mode

# Beyond this share of what is free, the weights are counted before they are made.
UNCOUNTED_SHARE = 0.25
# So much of what is free may weights take: the judge holds them beside inputs and outputs.
USABLE_SHARE = 0.8


class TooMuch(BaseException):
    """Passes through the constructor's own handlers."""


def read_number(path):
    try:
        with open(path, encoding="ascii") as file:
            return int(file.read())
    except (OSError, ValueError):
        return None


def available_bytes():
    """What this process may still take: of the machine, and of its group's limit."""
    with open("/proc/meminfo", encoding="ascii") as file:
        free = next(int(line.split()[1]) * 1024 for line in file if line.startswith("MemAvailable"))
    limit, used = (read_number(f"/sys/fs/cgroup/memory.{name}") for name in ("max", "current"))
    return free if limit is None or used is None else max(0, min(free, limit - used))


def bytes_of(tensor):
    return tensor.numel() * tensor.element_size()


@contextlib.contextmanager
def counted(limit):
    total = 0

    def count(module, name, parameter):
        nonlocal total
        has_form = parameter is not None and not torch.nn.parameter.is_lazy(parameter)
        total += bytes_of(parameter) if has_form else 0
        if total > limit:
            raise TooMuch

    handle = register_module_parameter_registration_hook(count)
    try:
        yield
    finally:
        handle.remove()


def needed(build):
    """The bytes of all weights, by a model without memory; None if it cannot be built so."""
    try:
        with fake_mode():
            tensors = build().state_dict().values()
        return sum(bytes_of(tensor) for tensor in tensors)
    except Exception:  # what is wrong with the constructor is told when it runs
        return None


def built_within_memory(build):
    """`build()`, unless its weights cannot fit; then nothing has been made."""
    available = available_bytes()
    state = torch.get_rng_state()
    try:
        with counted(UNCOUNTED_SHARE * available):
            return build()
    except TooMuch:
        refused = None
    except (MemoryError, RuntimeError) as error:  # one tensor alone may be more than the machine can promise
        refused = error
        if isinstance(error, RuntimeError) and "allocate memory" not in str(error):
            raise
    torch.set_rng_state(state)
    need = needed(build)
    torch.set_rng_state(state)
    if need is not None and need > USABLE_SHARE * available:
        raise ExportError(
            "too_large", f"the model's weights take {need / 1e9:.1f} GB, and {available / 1e9:.1f} GB of memory are free "
            "here", hint="give `--scale 1/4` for smaller sizes, or use a machine with more memory", code=3)
    if refused:
        raise refused
    return build()
