import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """Causal attention of few heads of keys, with rotary positions."""

    def forward(self, q, k, v):
        n, d = q.shape[-2], q.shape[-1]
        t = torch.arange(n, dtype=torch.float32)[:, None] * 10000.0 ** (-torch.arange(0, d, 2, dtype=torch.float32) / d)
        c, s = torch.cat([t.cos()] * 2, -1), torch.cat([t.sin()] * 2, -1)

        def rotated(x):
            a, b = x.chunk(2, -1)
            return x * c + torch.cat([-b, a], -1) * s

        k, v = k.repeat_interleave(4, 1), v.repeat_interleave(4, 1)
        return F.scaled_dot_product_attention(rotated(q), rotated(k), v, is_causal=True)


def get_inputs():
    return [torch.randn(2, 8, 48, 32), torch.randn(2, 2, 48, 32), torch.randn(2, 2, 48, 32)]


def get_init_inputs():
    return []
