import torch


class Broken(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, gradient):
        return gradient.nosuchmethod()


x = torch.ones(2, requires_grad=True)
Broken.apply(x).sum().backward()
