"""Calls that PyTorch leaves out of a graph where they do nothing, and that a replay needs."""

import contextlib

import torch


@contextlib.contextmanager
def recorded_contiguous():
    """While it lives, `contiguous()` is in the graph even where the tensor is so already, which PyTorch leaves out: on
    another device or in another type, the operator before it may lay its result out otherwise."""
    kept = torch.Tensor.contiguous

    def contiguous(self, memory_format=torch.contiguous_format):
        return torch.ops.aten.contiguous.default(self, memory_format=memory_format)

    torch.Tensor.contiguous = contiguous
    try:
        yield
    finally:
        torch.Tensor.contiguous = kept
