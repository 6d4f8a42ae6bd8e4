import torch
import torch.nn as nn


class Model(nn.Module):
    """Patches, linear projection, class token and positions, as at the head of a vision transformer."""

    def __init__(self, image_size, patch_size, channels, dim):
        super(Model, self).__init__()
        num_patches = (image_size // patch_size) ** 2
        self.patch_size = patch_size
        self.pos_embedding = nn.Parameter(torch.randn(1, num_patches + 1, dim))
        self.patch_to_embedding = nn.Linear(channels * patch_size**2, dim)
        self.cls_token = nn.Parameter(torch.randn(1, 1, dim))

    def forward(self, img):
        p = self.patch_size
        x = img.unfold(2, p, p).unfold(3, p, p).reshape(img.shape[0], -1, p * p * img.shape[1])
        x = self.patch_to_embedding(x)
        cls_tokens = self.cls_token.expand(img.shape[0], -1, -1)
        x = torch.cat((cls_tokens, x), dim=1)
        x = x + self.pos_embedding
        return x


def get_inputs():
    return [torch.randn(3, 3, 32, 32)]


def get_init_inputs():
    return [32, 8, 3, 64]
