# `torch.autograd` for scripts: functions with a backward of their own. Left out against PyTorch: hooks, forward mode,
# and marks of in-place changes.
import torch
from torch import _backward, _gradients, _record_backward


class FunctionCtx:
    """What forward leaves for backward; other attributes may be set freely."""

    def __init__(self, needs_input_grad):
        self.needs_input_grad = needs_input_grad
        self.saved_tensors = ()

    def save_for_backward(self, *tensors):
        self.saved_tensors = tensors

    def mark_non_differentiable(self, *tensors):
        self.non_differentiable = tensors

    def set_materialize_grads(self, value):
        if not value:
            raise NotImplementedError("gradients that are not there are zeros here")


class Function:
    @staticmethod
    def forward(ctx, *args, **kwargs):
        raise NotImplementedError("You must implement the forward function for custom autograd.Function.")

    @staticmethod
    def backward(ctx, *grad_outputs):
        raise NotImplementedError("You must implement the backward function for your custom autograd.Function.")

    # A separate set-up of the context; forward takes no context then.
    setup_context = None

    @classmethod
    def apply(cls, *args):
        needs = tuple(isinstance(each, torch.Tensor) and each.requires_grad for each in args)
        ctx = FunctionCtx(needs)
        with torch.no_grad():
            if cls.setup_context is None:
                outputs = cls.forward(ctx, *args)
            else:
                outputs = cls.forward(*args)
                cls.setup_context(ctx, args, outputs)
        if not (torch.is_grad_enabled() and any(needs)):
            return outputs
        return _record_backward(lambda *gradients: cls.backward(ctx, *gradients), args, outputs)


def grad(outputs, inputs, grad_outputs=None, retain_graph=None, create_graph=False, only_inputs=True,
         allow_unused=False):
    return _gradients(outputs, inputs, grad_outputs, retain_graph, create_graph, allow_unused)


def backward(tensors, grad_tensors=None, retain_graph=None, create_graph=False):
    _backward(tensors, grad_tensors, retain_graph, create_graph)
