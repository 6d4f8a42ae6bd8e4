import copy
import math

import torch
import torch.nn as nn
import torch.nn.functional as F


def layer(make, *inputs):
    """Weights and outputs of a module, twice: in training (running statistics move) and in evaluation."""
    torch.manual_seed(1234)
    module = make()
    state = module.state_dict()
    before = [value.clone() for value in state.values()]
    trained = module(*inputs)
    module.eval()
    evaluated = module(*inputs)
    names = [name for name, _ in module.named_parameters()]
    return list(state.keys()), names, before, trained, list(module.state_dict().values()), evaluated


def weights(make):
    torch.manual_seed(99)
    return list(make().state_dict().values())


def start(shape, fill):
    torch.manual_seed(5)
    return fill(torch.empty(shape))


torch.manual_seed(7)
x = torch.randn(3, 4)
y = torch.randn(3, 4)
v = torch.randn(4)
w = torch.randn(5, 4)
i = torch.randint(0, 10, (3, 4))
j = torch.randint(1, 5, (3, 4))
b = x > 0
h = x.half()
bf = x.bfloat16()
d = x.double()
s = torch.randn(2, 3, 8)
img = torch.randn(2, 4, 8, 8)
vol = torch.randn(2, 4, 4, 4, 4)
sig = torch.randn(2, 4, 16)
index = torch.tensor([0, 2, 1])
target = torch.tensor([1, 0, 3])
q = torch.randn(2, 2, 5, 8)
k = torch.randn(2, 2, 5, 8)
one = torch.tensor(2.5)
