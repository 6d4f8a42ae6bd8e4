import torch
import torch.nn as nn


class Model(nn.Module):
    """Attention inside shifted windows of a feature map, with a bias for each relative position."""

    def __init__(self, dim, window_size, num_heads, shift):
        super(Model, self).__init__()
        self.window_size, self.num_heads, self.shift = window_size, num_heads, shift
        self.qkv = nn.Linear(dim, dim * 3)
        self.position_bias = nn.Parameter(torch.randn(num_heads, window_size**2, window_size**2) * 0.02)

    def forward(self, x):
        B, H, W, C = x.shape
        w = self.window_size
        x = torch.roll(x, shifts=(-self.shift, -self.shift), dims=(1, 2))
        x = x.view(B, H // w, w, W // w, w, C).permute(0, 1, 3, 2, 4, 5).contiguous().view(-1, w * w, C)
        n = x.shape[0]
        qkv = self.qkv(x).reshape(n, w * w, 3, self.num_heads, C // self.num_heads).permute(2, 0, 3, 1, 4)
        q, k, v = qkv[0], qkv[1], qkv[2]
        att = (q * (C // self.num_heads) ** -0.5) @ k.transpose(-2, -1) + self.position_bias
        x = (att.softmax(dim=-1) @ v).transpose(1, 2).reshape(n, w * w, C)
        x = x.view(B, H // w, W // w, w, w, C).permute(0, 1, 3, 2, 4, 5).contiguous().view(B, H, W, C)
        return torch.roll(x, shifts=(self.shift, self.shift), dims=(1, 2))


def get_inputs():
    return [torch.randn(2, 8, 8, 32)]


def get_init_inputs():
    return [32, 4, 2, 2]
