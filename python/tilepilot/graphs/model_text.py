"""A region as the text of a model, which `tilepilot generate` takes: `Model`, `get_inputs`, `get_init_inputs`.

The text is the same for equal regions, also in other processes, so that what was found for it can be kept. Inputs and
weights are drawn like the values that the region was seen with: the same range of integers, for reals about the same
mean and spread."""

import dataclasses
import math
import operator

import torch


class NoText(Exception):
    """A region that cannot be written as a model, and why."""


@dataclasses.dataclass
class ModelText:
    text: str
    inputs: list  # positions of the region's inputs that forward takes
    weights: dict  # the name of a parameter or buffer -> position of the region's input


def written_as_model(region, observation, weights):
    """The model of a region. `weights` are the nodes of the graph that are weights of a module."""
    inputs, named, lines = [], {}, []
    names = {}
    placeholders = [node for node in region.module.graph.nodes if node.op == "placeholder"]
    for position, (node, inner) in enumerate(zip(region.inputs, placeholders)):
        value = observation.inputs[position]
        if node in weights:
            name = f"w{len(named)}"
            named[name] = position
            names[inner] = f"self.{name}"
            lines.append(_declared(name, value))
        else:
            names[inner] = f"x{len(inputs)}"
            inputs.append(position)
    if not inputs:
        raise NoText("it has no inputs beside weights")
    drawn = [_drawn(observation.inputs[position]) for position in inputs]
    body = _body(region.module.graph, names)
    parameters = ", ".join(f"x{index}" for index in range(len(inputs)))
    text = "\n".join([
        "import torch", "import torch.nn as nn", "", "", "class Model(nn.Module):", "    def __init__(self):",
        "        super().__init__()", *(f"        {line}" for line in lines), "",
        f"    def forward(self, {parameters}):", *(f"        {line}" for line in body), "", "",
        "def get_inputs():", f"    return [{', '.join(drawn)}]", "", "",
        "def get_init_inputs():", "    return []", ""])
    return ModelText(text, inputs, named)


def _body(graph, names):
    lines = []
    for node in graph.nodes:
        if node.op == "placeholder":
            continue
        if node.op == "output":
            returned = [names[item] for item in node.args[0]]
            lines.append(f"return {', '.join(returned)}")
            continue
        names[node] = f"v{len(lines)}"
        if node.target is operator.getitem:
            lines.append(f"{names[node]} = {names[node.args[0]]}[{node.args[1]}]")
            continue
        given = [_written(argument, names) for argument in node.args]
        given += [f"{name}={_written(argument, names)}" for name, argument in node.kwargs.items()]
        lines.append(f"{names[node]} = torch.ops.{node.target}({', '.join(given)})")
    return lines


def _written(value, names):
    if isinstance(value, torch.fx.Node):
        return names[value]
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(_written(item, names) for item in value)}]"
    if isinstance(value, float) and not math.isfinite(value):
        return f'float("{value}")'
    if value is None or isinstance(value, (bool, int, float, str, torch.dtype)):
        return repr(value)
    if isinstance(value, torch.device):
        return 'torch.device("cpu")'  # models are exported there; the judge runs them where the target is
    if value in (torch.strided, torch.contiguous_format, torch.preserve_format):
        return str(value)
    raise NoText(f"an operator has an argument of type `{type(value).__name__}`")


def _declared(name, value):
    if not value.is_contiguous():
        raise NoText("a weight is not contiguous")
    drawn = _drawn(value)
    if isinstance(value, torch.nn.Parameter):
        return f"self.{name} = nn.Parameter({drawn})"
    return f'self.register_buffer("{name}", {drawn})'


def _drawn(value):
    """An expression for a tensor like this one, with its elements in the order of its shape."""
    shape, dtype = tuple(value.shape), value.dtype
    if value.numel() == 0:
        raise NoText("an input has no elements")
    if dtype is torch.bool:
        share = _rounded(value.float().mean().item())
        return f"torch.rand({shape}) < {share}"
    if not dtype.is_floating_point:
        if dtype not in (torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64):
            raise NoText(f"an input is `{dtype}`")
        low, high = int(value.min()), int(value.max())
        return f"torch.randint({low}, {high + 1}, {shape}, dtype={dtype})"
    if dtype not in (torch.float32, torch.float64, torch.float16, torch.bfloat16):
        raise NoText(f"an input is `{dtype}`")
    return _drawn_reals(value.detach().float(), shape, dtype)


def _drawn_reals(value, shape, dtype):
    low, high = value.min().item(), value.max().item()
    if not (math.isfinite(low) and math.isfinite(high)):
        raise NoText("an input has elements that are not finite")
    if low == high:
        return f"torch.full({shape}, {_rounded(low)}, dtype={dtype})"
    mean, spread = value.mean().item(), value.std().item()
    if low >= 0:
        # Variances and shares stay what they are: not negative.
        return f"torch.rand({shape}, dtype={dtype}) * {_rounded(2 * mean)}"
    drawn = f"torch.randn({shape}, dtype={dtype}) * {_rounded(spread)}"
    return drawn if abs(mean) < spread / 4 else f"{drawn} + {_rounded(mean)}"


def _rounded(number):
    """A power of two nearby: models whose weights differ a little have the same text."""
    if number == 0 or not math.isfinite(number):
        return 0.0
    return math.copysign(2.0 ** round(math.log2(abs(number))), number)
