"""What ATen's operators do not show of a traced program, written out as operators."""

import contextlib
import math

import torch

from tilepilot_export.errors import ExportError


def in_all_graphs(graph_module):
    for module in graph_module.modules():
        if isinstance(module, torch.fx.GraphModule):
            yield from module.graph.nodes


def resolved(program):
    """The program with the casts of `torch.autocast` and the batches of `torch.vmap` as operators, if it has any: what
    changes a buffer or an input is an output then."""
    regions = [node for node in in_all_graphs(program.graph_module)
               if getattr(node.target, "__name__", "") == "wrap_with_autocast"]
    for node in regions:
        device, enabled = node.args[0], node.args[2]
        if device != "cpu" and enabled:
            raise ExportError("unsupported_op", f"the model cannot be exported: `torch.autocast` for `{device}` casts "
                              "nothing on a processor, where the reference is made",
                              hint="cast in `forward`, or convert the whole model: `--dtype bf16`")
    batched = any(getattr(node.target, "__module__", "") == "torch._functorch.predispatch"
                  for node in in_all_graphs(program.graph_module))
    return program.run_decompositions({}) if regions or batched else program


def gaussian_nll_loss(input, target, var, full=False, eps=1e-6, reduction="mean"):
    """As PyTorch's, which looks whether a variance is negative, and so cannot be traced."""
    if not isinstance(var, torch.Tensor):
        var = var * torch.ones_like(input)
    elif var.dim() == input.dim() - 1:
        var = var.unsqueeze(-1)
    bounded = var.clamp(min=eps)  # nobody asks for gradients
    loss = 0.5 * (bounded.log() + (input - target).square() / bounded)
    if full:
        loss = loss + 0.5 * math.log(2 * math.pi)
    return {"mean": loss.mean, "sum": loss.sum}.get(reduction, lambda: loss)()


@contextlib.contextmanager
def without_value_checks():
    """While it lives, functions of PyTorch's that look at values only to refuse some do not."""
    functional = torch.nn.functional
    kept, functional.gaussian_nll_loss = functional.gaussian_nll_loss, gaussian_nll_loss
    try:
        yield
    finally:
        functional.gaussian_nll_loss = kept
