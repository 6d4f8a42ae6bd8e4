import torch
import torch.nn as nn


class Model(nn.Module):
    """Tensors in a dict and in lists, of no axes, complex; a running mean of no axes; nested results."""

    def __init__(self):
        super().__init__()
        self.register_buffer("mean", torch.tensor(1.0))

    def forward(self, batch, pair, scale):
        x = batch["a"] + pair[1][0] * scale
        self.mean.mul_(0.9).add_(pair[0].mean() * 0.1)
        y = torch.softmax(x * self.mean, -1)
        return y, (torch.fft.fft(y).abs(), {"n": 3, "size": (x * x).mean(), "seen": batch["b"] * 2})


def get_inputs():
    return [{"a": torch.randn(64, 256), "b": torch.randn(8)}, [torch.randn(64), [torch.randn(64, 256)]], torch.rand(())]


def get_init_inputs():
    return []
