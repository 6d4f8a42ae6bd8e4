"""`tilepilot.optimize`: a model whose calls go through the backend, compiled for given inputs."""

import copy
import operator
import types

import torch
from torch.utils import _pytree as pytree

from tilepilot.graphs.backend import chosen_options, reported
from tilepilot.graphs.devices import gpus_of, seconds_of_calls
from tilepilot.graphs.generation import find_command
from tilepilot.graphs.versions import is_no_slower


def _call_of(module):
    """The module's call as a function whose code is its own. Dynamo traces no frame of torch's modules, such as
    `Sequential.forward` or `Module._call_impl`, and compiles one code a few times only."""
    def call(*args, **kwargs):
        return module._call_impl(*args, **kwargs)

    return types.FunctionType(call.__code__.replace(), call.__globals__, call.__name__, None, call.__closure__)


class _AnotherFace:
    """Of a model: everything but the call is the model's own, its weights, layers, hooks and mode."""
    __slots__ = ()

    def __init_subclass__(cls, **_):
        pass  # a model's class may count those that are derived from it

    def __copy__(self):
        return copy.copy(self._tilepilot_model)

    def __deepcopy__(self, memo):
        return copy.deepcopy(self._tilepilot_model, memo)

    def __reduce_ex__(self, protocol):
        return operator.getitem, ((self._tilepilot_model,), 0)  # which is read without this package, too


def _another_face_of(model):
    """An object that shares all attributes with the model, but for `_compiled_call_impl` and `tilepilot_regions`."""
    own = {"_compiled_call_impl": None}
    made_of = type(model)
    members = {
        "__module__": made_of.__module__, "__qualname__": made_of.__qualname__, "__doc__": made_of.__doc__,
        "_tilepilot_model": property(lambda _: model), "tilepilot_regions": [],
        # What `Module.compile` sets, and a call asks for.
        "_compiled_call_impl": property(lambda _: own["_compiled_call_impl"],
                                        lambda _, call: own.update(_compiled_call_impl=call))}
    face = object.__new__(type(made_of)(made_of.__name__, (_AnotherFace, made_of), members))
    face.__dict__ = model.__dict__
    return face


def optimize(model, example_inputs, mode, options):
    if not isinstance(model, torch.nn.Module):
        raise TypeError(f"`tilepilot.optimize` needs a torch.nn.Module, not a `{type(model).__name__}`")
    if isinstance(example_inputs, torch.Tensor) or not isinstance(example_inputs, (list, tuple)):
        raise TypeError("the example inputs are a list or tuple of the model's arguments")
    find_command(chosen_options(mode, options))  # raises here what Dynamo would wrap
    if isinstance(model, _AnotherFace):
        model = model._tilepilot_model
    optimized = _another_face_of(model)
    optimized._compiled_call_impl = torch.compile(_call_of(optimized), backend="tilepilot",
                                                  options={"background": mode == "background", **options})
    tensors = [*pytree.tree_leaves(example_inputs), *model.parameters(), *model.buffers()]
    buffers = {name: buffer.clone() for name, buffer in model.named_buffers()}
    with reported() as regions, torch.no_grad(), torch.random.fork_rng(devices=gpus_of(tensors)):
        optimized(*example_inputs)
        if mode != "background" and not _is_no_slower(model, optimized, example_inputs, regions):
            optimized._compiled_call_impl = None
        for name, buffer in model.named_buffers():
            buffer.copy_(buffers[name])
    optimized.tilepilot_regions[:] = regions
    return optimized


def _is_no_slower(model, optimized, example_inputs, regions):
    """Of whole calls: what Dynamo adds to each, and what it traces otherwise than eager computes it (a mask that eager
    leaves out), no graph can tell."""
    if all(region.runs == "torch" for region in regions):
        return False
    inputs = pytree.tree_map_only(torch.Tensor, torch.clone, tuple(example_inputs))  # a call may write to them
    leaves = [leaf for leaf in pytree.tree_leaves(inputs) if isinstance(leaf, torch.Tensor)]
    device = next((held.device for held in [*leaves, *model.parameters()] if held.is_cuda), torch.device("cpu"))
    sides = (lambda: optimized(*inputs), lambda: model._call_impl(*inputs))
    return is_no_slower("the model", lambda: seconds_of_calls(device, *sides), regions)
