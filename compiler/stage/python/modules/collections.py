# The classes of `collections` that are written in Python.
class deque:
    def __init__(self, iterable=(), maxlen=None):
        if maxlen is not None and maxlen < 0:
            raise ValueError("maxlen must be non-negative")
        self._items = []
        self._maxlen = maxlen
        self.extend(iterable)

    @property
    def maxlen(self):
        return self._maxlen

    def append(self, item):
        self._items.append(item)
        if self._maxlen is not None and len(self._items) > self._maxlen:
            del self._items[0]

    def appendleft(self, item):
        self._items.insert(0, item)
        if self._maxlen is not None and len(self._items) > self._maxlen:
            del self._items[-1]

    def extend(self, iterable):
        for item in list(iterable):
            self.append(item)

    def extendleft(self, iterable):
        for item in list(iterable):
            self.appendleft(item)

    def pop(self):
        if not self._items:
            raise IndexError("pop from an empty deque")
        return self._items.pop()

    def popleft(self):
        if not self._items:
            raise IndexError("pop from an empty deque")
        return self._items.pop(0)

    def rotate(self, n=1):
        if self._items:
            n %= len(self._items)
            self._items = self._items[len(self._items) - n:] + self._items[:len(self._items) - n]

    def insert(self, index, item):
        if self._maxlen is not None and len(self._items) >= self._maxlen:
            raise IndexError("deque already at its maximum size")
        self._items.insert(index, item)

    def remove(self, item):
        if item not in self._items:
            raise ValueError("deque.remove(x): x not in deque")
        self._items.remove(item)

    def index(self, item, *bounds):
        return self._items.index(item, *bounds)

    def count(self, item):
        return self._items.count(item)

    def reverse(self):
        self._items.reverse()

    def clear(self):
        self._items.clear()

    def copy(self):
        return deque(self._items, self._maxlen)

    __copy__ = copy

    def __len__(self):
        return len(self._items)

    def __iter__(self):
        return iter(self._items)

    def __reversed__(self):
        return reversed(self._items)

    def __contains__(self, item):
        return item in self._items

    def __getitem__(self, index):
        if isinstance(index, slice):
            raise TypeError("sequence index must be integer, not 'slice'")
        if not -len(self._items) <= index < len(self._items):
            raise IndexError("deque index out of range")
        return self._items[index]

    def __setitem__(self, index, item):
        if not -len(self._items) <= index < len(self._items):
            raise IndexError("deque index out of range")
        self._items[index] = item

    def __delitem__(self, index):
        if not -len(self._items) <= index < len(self._items):
            raise IndexError("deque index out of range")
        del self._items[index]

    def __eq__(self, other):
        return self._items == other._items if isinstance(other, deque) else NotImplemented

    def __lt__(self, other):
        return self._items < other._items if isinstance(other, deque) else NotImplemented

    def __le__(self, other):
        return self._items <= other._items if isinstance(other, deque) else NotImplemented

    def __gt__(self, other):
        return self._items > other._items if isinstance(other, deque) else NotImplemented

    def __ge__(self, other):
        return self._items >= other._items if isinstance(other, deque) else NotImplemented

    def __add__(self, other):
        return deque(self._items + other._items, self._maxlen) if isinstance(other, deque) else NotImplemented

    def __iadd__(self, other):
        self.extend(other)
        return self

    def __mul__(self, times):
        return deque(self._items * times, self._maxlen)

    def __repr__(self):
        return f"deque({self._items!r})" if self._maxlen is None else f"deque({self._items!r}, maxlen={self._maxlen})"


class ChainMap:
    def __init__(self, *maps):
        self.maps = list(maps) or [{}]

    def __getitem__(self, key):
        for each in self.maps:
            if key in each:
                return each[key]
        raise KeyError(key)

    def get(self, key, default=None):
        return self[key] if key in self else default

    def __setitem__(self, key, value):
        self.maps[0][key] = value

    def __delitem__(self, key):
        if key not in self.maps[0]:
            raise KeyError(f"Key not found in the first mapping: {key!r}")
        del self.maps[0][key]

    def _merged(self):
        merged = {}
        for each in reversed(self.maps):
            merged.update(each)
        return merged

    def __contains__(self, key):
        return any(key in each for each in self.maps)

    def __iter__(self):
        return iter(self._merged())

    def __len__(self):
        return len(self._merged())

    def __bool__(self):
        return any(self.maps)

    def keys(self):
        return self._merged().keys()

    def values(self):
        return self._merged().values()

    def items(self):
        return self._merged().items()

    def pop(self, key, *default):
        return self.maps[0].pop(key, *default)

    def update(self, *others, **values):
        self.maps[0].update(*others, **values)

    def setdefault(self, key, default=None):
        if key not in self:
            self[key] = default
        return self[key]

    def new_child(self, m=None, **values):
        first = {} if m is None else m
        first.update(values)
        return ChainMap(first, *self.maps)

    @property
    def parents(self):
        return ChainMap(*self.maps[1:])

    def __eq__(self, other):
        return self._merged() == (other._merged() if isinstance(other, ChainMap) else other)

    def __repr__(self):
        return f"ChainMap({', '.join(map(repr, self.maps))})"
