"""Twelve networks as people write them, with random weights: small transformers and convolutional networks.

MODELS: name -> a function of a device that returns a module in evaluation mode and its inputs."""

import torch
import torch.nn.functional as F
from torch import nn


class Attention(nn.Module):
    def __init__(self, width, heads, causal):
        super().__init__()
        self.heads, self.causal = heads, causal
        self.inner, self.outer = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x):
        batch, length, width = x.shape
        q, k, v = self.inner(x).view(batch, length, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=self.causal)
        return self.outer(y.transpose(1, 2).reshape(batch, length, width))


class Block(nn.Module):
    """Of GPT-2, ViT (not causal), BERT (norms afterwards)."""

    def __init__(self, width, heads, causal=False, norm_after=False, tanh=False):
        super().__init__()
        self.norm_after = norm_after
        self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = Attention(width, heads, causal)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(approximate="tanh" if tanh else "none"),
                                 nn.Linear(4 * width, width))

    def forward(self, x):
        if self.norm_after:
            x = self.first(x + self.attention(x))
            return self.second(x + self.mlp(x))
        x = x + self.attention(self.first(x))
        return x + self.mlp(self.second(x))


class Tokens(nn.Module):
    """Embedding, blocks, and a head of words."""

    def __init__(self, words, length, width, blocks, norm=None):
        super().__init__()
        self.words, self.places = nn.Embedding(words, width), nn.Embedding(length, width)
        self.blocks, self.norm = nn.Sequential(*blocks), norm or nn.LayerNorm(width)
        self.head = nn.Linear(width, words, bias=False)

    def forward(self, tokens):
        x = self.words(tokens) + self.places(torch.arange(tokens.shape[1], device=tokens.device))
        return self.head(self.norm(self.blocks(x)))


class RmsNorm(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x):
        scale = torch.rsqrt(x.float().pow(2).mean(-1, keepdim=True) + 1e-6)
        return (x.float() * scale).to(x.dtype) * self.weight


class LlamaBlock(nn.Module):
    """Rotary positions, grouped heads, a gated MLP."""

    def __init__(self, width, heads, groups, length):
        super().__init__()
        self.heads, self.groups, self.size = heads, groups, width // heads
        self.q, self.kv = nn.Linear(width, width, bias=False), nn.Linear(width, 2 * groups * self.size, bias=False)
        self.out = nn.Linear(width, width, bias=False)
        self.gate, self.up = (nn.Linear(width, 8 * width // 3, bias=False) for _ in range(2))
        self.down = nn.Linear(8 * width // 3, width, bias=False)
        self.first, self.second = RmsNorm(width), RmsNorm(width)
        angles = torch.outer(torch.arange(length), 1e4 ** -(torch.arange(0, self.size, 2) / self.size))
        self.register_buffer("cos", torch.cat([angles, angles], -1).cos())
        self.register_buffer("sin", torch.cat([angles, angles], -1).sin())

    def rotated(self, x):
        left, right = x.chunk(2, -1)
        return x * self.cos.to(x.dtype) + torch.cat([-right, left], -1) * self.sin.to(x.dtype)

    def forward(self, x):
        batch, length, width = x.shape
        y = self.first(x)
        q = self.q(y).view(batch, length, self.heads, self.size).transpose(1, 2)
        k, v = self.kv(y).view(batch, length, 2 * self.groups, self.size).transpose(1, 2).chunk(2, 1)
        k, v = (t.repeat_interleave(self.heads // self.groups, 1) for t in (self.rotated(k), v))
        y = F.scaled_dot_product_attention(self.rotated(q), k, v, is_causal=True)
        x = x + self.out(y.transpose(1, 2).reshape(batch, length, width))
        y = self.second(x)
        return x + self.down(F.silu(self.gate(y)) * self.up(y))


class Patches(nn.Module):
    """Images as rows of patches, blocks, classes from the mean."""

    def __init__(self, size, patch, width, blocks, classes=1000):
        super().__init__()
        self.patch = nn.Conv2d(3, width, patch, patch)
        self.places = nn.Parameter(torch.randn((size // patch) ** 2, width) * 0.02)
        self.blocks, self.norm, self.head = nn.Sequential(*blocks), nn.LayerNorm(width), nn.Linear(width, classes)

    def forward(self, images):
        x = self.patch(images).flatten(2).transpose(1, 2) + self.places
        return self.head(self.norm(self.blocks(x)).mean(1))


class MixerBlock(nn.Module):
    def __init__(self, length, width):
        super().__init__()
        self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)
        self.along = nn.Sequential(nn.Linear(length, length // 2), nn.GELU(), nn.Linear(length // 2, length))
        self.across = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x):
        x = x + self.along(self.first(x).transpose(1, 2)).transpose(1, 2)
        return x + self.across(self.second(x))


class Residual(nn.Module):
    """Of ResNet-18."""

    def __init__(self, inner, outer, stride):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(inner, outer, 3, stride, 1, bias=False), nn.BatchNorm2d(outer), nn.ReLU(),
                                  nn.Conv2d(outer, outer, 3, 1, 1, bias=False), nn.BatchNorm2d(outer))
        self.short = nn.Identity() if inner == outer and stride == 1 else nn.Sequential(
            nn.Conv2d(inner, outer, 1, stride, bias=False), nn.BatchNorm2d(outer))

    def forward(self, x):
        return F.relu(self.body(x) + self.short(x))


class Inverted(nn.Module):
    """Of MobileNet v2 and v3: widen, depthwise, narrow."""

    def __init__(self, inner, outer, stride):
        super().__init__()
        wide = 4 * inner
        self.short = inner == outer and stride == 1
        self.body = nn.Sequential(nn.Conv2d(inner, wide, 1, bias=False), nn.BatchNorm2d(wide), nn.Hardswish(),
                                  nn.Conv2d(wide, wide, 3, stride, 1, groups=wide, bias=False), nn.BatchNorm2d(wide),
                                  nn.Hardswish(), nn.Conv2d(wide, outer, 1, bias=False), nn.BatchNorm2d(outer))

    def forward(self, x):
        return x + self.body(x) if self.short else self.body(x)


class ConvNextBlock(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.depth, self.norm = nn.Conv2d(width, width, 7, 1, 3, groups=width), nn.LayerNorm(width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.scale = nn.Parameter(torch.rand(width))

    def forward(self, x):
        y = self.norm(self.depth(x).permute(0, 2, 3, 1))
        return x + (self.scale * self.down(F.gelu(self.up(y)))).permute(0, 3, 1, 2)


def classes_of(features, width):
    return nn.Sequential(*features, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(width, 1000))


def stem(width):
    return nn.Sequential(nn.Conv2d(3, width, 7, 2, 3, bias=False), nn.BatchNorm2d(width), nn.ReLU(), nn.MaxPool2d(3, 2, 1))


class Scores(nn.Module):
    """Of recommendations: embeddings, crossed features, an MLP."""

    def __init__(self, tables=26, words=10000, width=64):
        super().__init__()
        self.tables = nn.ModuleList(nn.Embedding(words, width) for _ in range(tables))
        self.dense = nn.Sequential(nn.Linear(13, 512), nn.ReLU(), nn.Linear(512, width), nn.ReLU())
        crossed = (tables + 1) * tables // 2
        self.register_buffer("pairs", torch.tril_indices(tables + 1, tables + 1, -1))
        self.top = nn.Sequential(nn.Linear(width + crossed, 1024), nn.ReLU(), nn.Linear(1024, 256), nn.ReLU(),
                                 nn.Linear(256, 1), nn.Sigmoid())

    def forward(self, dense, sparse):
        x = self.dense(dense)
        rows = torch.stack([x, *(table(sparse[:, i]) for i, table in enumerate(self.tables))], 1)
        crossed = torch.bmm(rows, rows.transpose(1, 2))[:, self.pairs[0], self.pairs[1]]
        return self.top(torch.cat([x, crossed], 1))


def tokens(batch, length, words=8192):
    return torch.randint(0, words, (batch, length))


def images(batch, size=224):
    return torch.randn(batch, 3, size, size)


MAKERS = {
    "gpt2": lambda: (Tokens(8192, 512, 768, [Block(768, 12, True, tanh=True) for _ in range(6)]), [tokens(4, 512)]),
    "bert": lambda: (Tokens(8192, 256, 512, [Block(512, 8, norm_after=True) for _ in range(6)]), [tokens(16, 256)]),
    "llama": lambda: (Tokens(8192, 512, 768, [LlamaBlock(768, 12, 4, 512) for _ in range(6)], RmsNorm(768)),
                      [tokens(4, 512)]),
    "vit": lambda: (Patches(224, 16, 384, [Block(384, 6) for _ in range(8)]), [images(16)]),
    "mixer": lambda: (Patches(224, 16, 512, [MixerBlock(196, 512) for _ in range(8)]), [images(16)]),
    "encoder layers": lambda: (nn.TransformerEncoder(nn.TransformerEncoderLayer(512, 8, 2048, batch_first=True), 4,
                                                     enable_nested_tensor=False), [torch.randn(8, 256, 512)]),
    "resnet": lambda: (classes_of([stem(64), Residual(64, 64, 1), Residual(64, 128, 2), Residual(128, 256, 2),
                                   Residual(256, 512, 2)], 512), [images(16)]),
    "vgg": lambda: (classes_of([layer for inner, outer in ((3, 64), (64, 128), (128, 256), (256, 512)) for layer in (
        nn.Conv2d(inner, outer, 3, 1, 1), nn.ReLU(), nn.MaxPool2d(2))], 512), [images(8)]),
    "mobilenet": lambda: (classes_of([stem(32), Inverted(32, 32, 1), Inverted(32, 64, 2), Inverted(64, 64, 1),
                                      Inverted(64, 128, 2), Inverted(128, 128, 1)], 128), [images(16)]),
    "convnext": lambda: (classes_of([nn.Conv2d(3, 128, 4, 4), *(ConvNextBlock(128) for _ in range(4))], 128),
                         [images(16)]),
    "scores": lambda: (Scores(), [torch.randn(2048, 13), tokens(2048, 26, 10000)]),
    "recurrent": lambda: (nn.Sequential(nn.Linear(64, 256), nn.Tanh(), Gated(256), Gated(256), nn.Linear(256, 64)),
                          [torch.randn(64, 32, 64)]),
}


class Gated(nn.Module):
    """A minimal gated recurrent layer, step by step."""

    def __init__(self, width):
        super().__init__()
        self.gates = nn.Linear(width, 2 * width)
        self.norm = nn.LayerNorm(width)

    def forward(self, x):
        gate, value = self.gates(x).chunk(2, -1)
        gate, state, states = torch.sigmoid(gate), torch.zeros_like(value[:, 0]), []
        for step in range(x.shape[1]):
            state = gate[:, step] * state + (1 - gate[:, step]) * torch.tanh(value[:, step])
            states.append(state)
        return self.norm(torch.stack(states, 1) + x)


def made(name, device, dtype):
    """The module in evaluation mode and its inputs, of the same numbers each time."""
    torch.manual_seed(sum(map(ord, name)))
    module, inputs = MAKERS[name]()
    floating = [value.to(device, dtype) if value.is_floating_point() else value.to(device) for value in inputs]
    return module.eval().to(device, dtype), floating
