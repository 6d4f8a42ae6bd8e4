"""Kernels as operators of torch.library, so that torch.compile and torch.export see through them."""

import hashlib
import keyword
import os

import torch
from torch.autograd import forward_ad

from tilepilot.locks import ForkSafeLock

_library = torch.library.Library("tilepilot", "FRAGMENT")
_operators = {}
_lock = ForkSafeLock()


def operator_for(native):
    """The operator of a kernel (`_core.Kernel`). Equal programs are one operator, also in another process."""
    text = f"{native.script()}\n{native.outputs}\n{native.target}"
    name = f"{native.name}_{hashlib.sha256(text.encode()).hexdigest()[:12]}"
    with _lock:
        if name not in _operators:
            # Another thread may have been half-way when this process was forked.
            taken = hasattr(torch.ops.tilepilot, name)
            _operators[name] = Operator(f"{name}_{os.getpid()}" if taken else name, native)
        return _operators[name]


class Operator:
    def __init__(self, name, native):
        self.native = native
        parameters = native.parameters
        self.inputs = [row for row in parameters if not row["output"]]
        self.results = [parameters[position] for position in native.outputs]
        _library.define(f"{name}({', '.join(map(_declared, self.inputs))}) -> {_returned(len(self.results))}")
        packet = getattr(torch.ops.tilepilot, name)
        self.overload = packet.default
        for key in ("CPU", "CUDA"):
            _library.impl(name, self._run, key)
        _library.impl(name, self._refuse_gradient, "Autograd")
        torch.library.register_fake(f"tilepilot::{name}", self._fake, lib=_library)

    def __call__(self, *args, **kwargs):
        result = self.overload(*args, **kwargs)
        return list(result) if isinstance(result, tuple) else result

    def _run(self, *args):
        result = self.native.run(*args)
        return tuple(result) if isinstance(result, list) else result

    def _refuse_gradient(self, *args):
        tensors = [argument for argument in args if isinstance(argument, torch.Tensor)]
        if forward_ad._current_level >= 0 and any(forward_ad.unpack_dual(each).tangent is not None for each in tensors):
            from tilepilot.errors import ArgumentError
            raise ArgumentError(f"a tensor for `{self.native.name}` carries a gradient of forward mode, and the kernel "
                                "has none")
        if torch.is_grad_enabled() and any(tensor.requires_grad for tensor in tensors):
            from tilepilot.errors import ArgumentError
            raise ArgumentError(f"a tensor for `{self.native.name}` requires its gradient, and the kernel has no "
                                "backward pass: call it under `torch.no_grad()`")
        with torch._C._AutoDispatchBelowAutograd():
            return self.overload(*args)

    def _fake(self, *args):
        symbols, device = {}, None
        for row, argument in zip(self.inputs, args):
            if row["shape"] is None:
                continue
            device = argument.device
            _match(row, argument, symbols)
        device = device or self.native.device
        made = [torch.empty([_extent(extent, symbols) for extent in _held(row)], dtype=_dtype(row["dtype"]),
                            device=device) for row in self.results]
        if len(made) == 1:
            return made[0]
        return tuple(made) if made else None


def _declared(row):
    name = row["name"] + ("_" if keyword.iskeyword(row["name"]) else "")
    if row["shape"] is None:
        return f"{'float' if row['dtype'].startswith(('float', 'bfloat')) else 'SymInt'} {name}"
    return f"Tensor({row['name']}!) {name}" if row["written"] else f"Tensor {name}"


def _returned(count):
    if count == 1:
        return "Tensor"
    return f"({', '.join(['Tensor'] * count)})"


def _match(row, tensor, symbols):
    """Takes the sizes that the declaration leaves open from a tensor, and checks the others."""
    if tensor.dim() != len(row["shape"]):
        raise ValueError(f"argument `{row['name']}` must have {len(row['shape'])} axes, got shape "
                         f"{tuple(tensor.shape)}")
    for extent, actual in zip(row["shape"], tensor.shape):
        if isinstance(extent, str):
            if extent.isidentifier():
                symbols.setdefault(extent, actual)
        elif row["dtype"] not in ("int4", "uint4", "float4_e2m1fn"):
            torch._check(actual == extent, lambda: f"argument `{row['name']}` must have shape {row['shape']}")


def _extent(extent, symbols):
    if not isinstance(extent, str):
        return extent
    return eval(extent, {"__builtins__": {}, "min": min, "max": max, "ceildiv": lambda a, b: -(-a // b)}, symbols)


def _held(row):
    """The shape of the tensor that holds the elements: two of four bits are a byte."""
    shape = list(row["shape"])
    if row["dtype"] in ("int4", "uint4", "float4_e2m1fn"):
        shape[-1] = shape[-1] // 2
    return shape


def _dtype(name):
    held = {"int4": "int8", "uint4": "uint8", "tfloat32": "float32", "float4_e2m1fn": "float4_e2m1fn_x2"}
    return getattr(torch, held.get(name, name))
