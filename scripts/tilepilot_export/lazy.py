"""Lazy layers, which get their weights from the form of their first input."""

import torch


def has_lazy_weights(model):
    tensors = [*model.parameters(), *model.buffers()]
    return any(torch.nn.parameter.is_lazy(tensor) for tensor in tensors)


def with_weights(model, inputs):
    """The model, after a call in evaluation mode, which changes no statistics, if it has lazy layers."""
    if not has_lazy_weights(model):
        return model
    modes = [(module, module.training) for module in model.modules()]
    model.eval()
    with torch.no_grad():
        model(*inputs)
    for module, training in modes:
        module.training = training
    return model
