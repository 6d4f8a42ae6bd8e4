"""Targets as `tilelang` names them, as this compiler's: "auto", "cpu", "cuda", "cuda:sm_80", "cuda:sm_90a"."""

import os
import re

from tilepilot.errors import CompileError

_PROCESSOR = ("c", "cpu", "llvm")


def target_named(target):
    """What TILEPILOT_TARGET names, else the given target: text, a dict, or an object with such a text."""
    given = os.environ.get("TILEPILOT_TARGET") or target
    if isinstance(given, dict):
        given = f"{given.get('kind', '')} -arch={given.get('arch', '')}"
    text = str(given if given is not None else "auto").strip()
    kind = re.split(r"[ :]", text)[0]
    if kind == "auto":
        return "auto"
    if kind in _PROCESSOR:
        return "cpu"
    if kind != "cuda":
        raise CompileError(f"the target `{text}` is not available: leave `target` out, or name `cpu` or `cuda`")
    architecture = re.search(r"sm_(\d+)a?", text)
    return f"cuda:{_code_for(int(architecture[1]), text)}" if architecture else "cuda"


def _code_for(capability, text):
    """Whose code a GPU of this compute capability runs."""
    if 80 <= capability < 90:
        return "sm_80"
    if capability == 90:
        return "sm_90a"
    raise CompileError(f"the target `{text}` is not available: code is written for GPUs of 8.0 to 9.0")


def default_device():
    """Where tensors belong that are made for a kernel which may run anywhere."""
    import torch
    return "cuda" if target_named("auto") != "cpu" and torch.cuda.is_available() else "cpu"


def target_of_gpu(number):
    """That of the code which the GPU runs best; None: code is written for none of its kind."""
    import torch
    major, minor = torch.cuda.get_device_capability(number)
    return {8: "cuda:sm_80", 9: "cuda:sm_90a"}.get(major) if (major, minor) <= (9, 0) else None
