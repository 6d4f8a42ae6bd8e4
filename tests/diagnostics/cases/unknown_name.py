block_size = 128


def grid(n):
    return n // block_siz


grid(1024)
