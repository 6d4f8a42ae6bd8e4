import torch

x = torch.ones(2)


def check(y):
    torch.testing.assert_close(x, y)


check(x + 1)
