def blocks(n, size):
    return (n + size - 1) // size


blocks(100, 0)
