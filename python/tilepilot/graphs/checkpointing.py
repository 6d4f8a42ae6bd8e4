"""Activation checkpoints of a graph that torch's operators run.

Dynamo's operator for a checkpoint is made for compilers, which see to the random numbers themselves. Called as it is, it
draws others when it computes again for the gradient."""

import torch
from torch._higher_order_ops.wrap import TagActivationCheckpoint, tag_activation_checkpoint
from torch.utils.checkpoint import checkpoint


def restore_checkpoints(traced):
    """Puts torch's own checkpoints in the place of Dynamo's."""
    for module in traced.modules():
        if not isinstance(module, torch.fx.GraphModule):
            continue
        found = [node for node in module.graph.nodes if node.target is tag_activation_checkpoint]
        for node in found:
            node.target = _checkpoint
        if found:
            module.recompile()


def _checkpoint(part, *args, **kwargs):
    settings, own = TagActivationCheckpoint.divide_kwargs(kwargs)
    if not torch.is_grad_enabled():
        return part(*args, **own)
    settings["use_reentrant"] = False
    if "_checkpoint_context_fn" in part.meta:
        settings["context_fn"] = part.meta["_checkpoint_context_fn"]
    return checkpoint(part, *args, **settings, **own)
