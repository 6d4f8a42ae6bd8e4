"""Constants of a graph that are tensors of the model: buffers that are no part of its state, plain attributes."""

import torch

PREFIX = "constant:"


def held_at(model, path):
    """What the model holds there; None where there is no such attribute."""
    *modules, name = path.split(".")
    try:
        return getattr(model.get_submodule(".".join(modules)), name, None)
    except AttributeError:
        return None


def name_attributes(model, graph):
    """Adds `attribute` to the values of `graph` that such a tensor is."""
    for value in graph["values"]:
        if value["kind"] != "constant" or not value["name"].startswith(PREFIX):
            continue
        path = value["name"].removeprefix(PREFIX)
        held = held_at(model, path)
        if isinstance(held, torch.Tensor) and list(held.shape) == value["shape"]:
            value["attribute"] = path
