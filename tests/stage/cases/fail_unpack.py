batch, heads = (2, 8, 64)
