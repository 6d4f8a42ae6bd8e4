# `heapq`: a list as a binary heap, smallest item first. The same swaps as Python's, so that equal items keep its order.
def _down(heap, start, at):
    item = heap[at]
    while at > start:
        parent = (at - 1) >> 1
        if not item < heap[parent]:
            break
        heap[at] = heap[parent]
        at = parent
    heap[at] = item


def _up(heap, at):
    end, start, item = len(heap), at, heap[at]
    child = 2 * at + 1
    while child < end:
        right = child + 1
        if right < end and not heap[child] < heap[right]:
            child = right
        heap[at] = heap[child]
        at = child
        child = 2 * at + 1
    heap[at] = item
    _down(heap, start, at)


def heappush(heap, item):
    heap.append(item)
    _down(heap, 0, len(heap) - 1)


def _check(heap):
    if not heap:
        raise IndexError("index out of range")


def heappop(heap):
    _check(heap)
    last = heap.pop()
    if not heap:
        return last
    smallest, heap[0] = heap[0], last
    _up(heap, 0)
    return smallest


def heapreplace(heap, item):
    _check(heap)
    smallest, heap[0] = heap[0], item
    _up(heap, 0)
    return smallest


def heappushpop(heap, item):
    if heap and heap[0] < item:
        item, heap[0] = heap[0], item
        _up(heap, 0)
    return item


def heapify(x):
    for at in reversed(range(len(x) // 2)):
        _up(x, at)


def nsmallest(n, iterable, key=None):
    return sorted(iterable, key=key)[:max(n, 0)]


def nlargest(n, iterable, key=None):
    return sorted(iterable, key=key, reverse=True)[:max(n, 0)]


def merge(*iterables, key=None, reverse=False):
    runs = []
    for number, iterable in enumerate(iterables):
        iterator = iter(iterable)
        for item in iterator:
            runs.append([item if key is None else key(item), number, item, iterator])
            break
    while runs:
        best = runs[0]
        for run in runs[1:]:
            if (best[0] < run[0]) if reverse else (run[0] < best[0]):
                best = run
        yield best[2]
        for item in best[3]:
            best[0], best[2] = item if key is None else key(item), item
            break
        else:
            runs.remove(best)
