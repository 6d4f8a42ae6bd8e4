import torch


x = torch.randn(4, 4)
