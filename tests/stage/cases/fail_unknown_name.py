def compute(width):
    return widht * 2


def build(n):
    return [compute(i) for i in range(n)]


build(3)
