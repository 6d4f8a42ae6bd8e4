# `torch.distributions` for scripts: what they draw inputs from.
import torch


class Uniform:
    def __init__(self, low, high):
        self.low = low
        self.high = high

    def sample(self, sample_shape=()):
        return torch.rand(sample_shape) * (self.high - self.low) + self.low


class Normal:
    def __init__(self, loc, scale):
        self.loc = loc
        self.scale = scale

    def sample(self, sample_shape=()):
        return torch.randn(sample_shape) * self.scale + self.loc


from torch.distributions import normal, uniform  # they look the classes up here
