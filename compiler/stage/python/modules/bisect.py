# `bisect`: places in a sorted list.
def _place(a, lo, hi, key, stands_before):
    if lo < 0:
        raise ValueError("lo must be non-negative")
    if hi is None:
        hi = len(a)
    while lo < hi:
        middle = (lo + hi) // 2
        if stands_before(a[middle] if key is None else key(a[middle])):
            lo = middle + 1
        else:
            hi = middle
    return lo


def bisect_left(a, x, lo=0, hi=None, *, key=None):
    return _place(a, lo, hi, key, lambda item: item < x)


def bisect_right(a, x, lo=0, hi=None, *, key=None):
    return _place(a, lo, hi, key, lambda item: not x < item)


def insort_left(a, x, lo=0, hi=None, *, key=None):
    a.insert(bisect_left(a, x if key is None else key(x), lo, hi, key=key), x)


def insort_right(a, x, lo=0, hi=None, *, key=None):
    a.insert(bisect_right(a, x if key is None else key(x), lo, hi, key=key), x)


bisect, insort = bisect_right, insort_right
