from .more.deep import depth

UNIT = 40 + depth


def area(radius):
    return 3 * radius * radius
