M, block = 100, 64
assert M % block == 0, f"{M} is not a multiple of {block}"
