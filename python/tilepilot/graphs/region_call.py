"""A verified program in the place of a region: called with the region's inputs, it returns its outputs."""

import threading

import torch

from tilepilot.errors import TilePilotError
from tilepilot.graphs.agreement import NotUsed, check_agreement
from tilepilot.graphs.devices import is_autocast_on, seconds_of_calls
from tilepilot.loading import load


class RegionCall:
    """Eager's operators where a gradient is wanted or autocast is on, else the program.

    Weights are the caller's own: the program sees those of each call, whichever module they belong to."""

    def __init__(self, region, model, program):
        self.eager = region.module.forward
        self.program = program
        self._inputs, self._weights = model.inputs, sorted(model.weights.items())
        self._made = load(program, strict=True).ModelNew
        self._local = threading.local()  # a thread's instance holds the weights of its call
        self.results = None  # shape, stride, dtype and device of each, as eager gives them
        self._check_weights()

    def __call__(self, *values):
        if is_autocast_on() or torch.is_grad_enabled() and any(v.requires_grad for v in values):
            return self.eager(*values)
        return self.compute(values)

    def compute(self, values):
        """The program, without a gradient."""
        instance = self._instance()
        for name, position in self._weights:
            kept = instance._parameters if name in instance._parameters else instance._buffers
            kept[name] = values[position]
        with torch.no_grad():
            results = instance(*[values[position].contiguous() for position in self._inputs])
        results = results if isinstance(results, (list, tuple)) else (results,)
        if self.results is None:
            return tuple(results)
        return tuple(_laid_out(result, facts[1]) for result, facts in zip(results, self.results))

    def _instance(self):
        instance = getattr(self._local, "instance", None)
        if instance is None:
            with torch.device("meta"):  # its own weights are never used
                instance = self._made()
            self._local.instance = instance
        return instance

    def _check_weights(self):
        """A program that keeps what it computed from weights would not follow those of a call."""
        instance = self._instance()
        own = {*dict(instance.named_parameters()), *dict(instance.named_buffers())}
        if own != {name for name, _ in self._weights}:
            raise NotUsed("the program keeps other weights than the model")
        if any(isinstance(value, torch.Tensor) for module in instance.modules() for value in vars(module).values()):
            raise NotUsed("the program keeps tensors beside its weights")

    def check(self, values):
        """Raises NotUsed unless the program agrees with eager on these values and is faster here, too."""
        with torch.no_grad():
            expected = self.eager(*values)
            try:
                found = self.compute(values)
            except TilePilotError as error:
                raise NotUsed(f"the program refuses the values: {error}") from error
            # The judge has verified the program; only what is around it can be wrong: its inputs, weights, outputs.
            check_agreement("the program", found, expected)
            self.results = [(tuple(value.shape), value.stride(), value.dtype, value.device) for value in expected]
            ours, theirs = seconds_of_calls(values[0].device, lambda: self.compute(values), lambda: self.eager(*values))
        if ours >= theirs:
            raise NotUsed(f"here the program is not faster: {ours * 1e6:.0f} us, eager {theirs * 1e6:.0f} us")


def _laid_out(result, strides):
    if result.stride() == strides:
        return result
    return torch.empty_strided(result.shape, strides, dtype=result.dtype, device=result.device).copy_(result)
