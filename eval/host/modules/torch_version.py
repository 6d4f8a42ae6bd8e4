# `torch.version` for scripts: no toolkit of a GPU's maker is part of this LibTorch.
cuda = None
hip = None
debug = False
