import functools
import itertools
import math
from collections import defaultdict
from dataclasses import dataclass


@dataclass
class P:
    x: int = 3
    y: float = 0.5

    def __add__(self, o):
        return P(self.x + o.x, self.y + o.y)


def walk(tree):
    try:
        for child in tree:
            if isinstance(child, (list, tuple)):
                yield from walk(child)
            else:
                got = yield child
                if got:
                    yield got
    finally:
        seen.append(1)


seen, counts = [], defaultdict(list)
g = walk([1, [2, (3, [4])], 5])
print(next(g), g.send("x"), list(g), seen)
for k, v in itertools.product("ab", range(3)):
    counts[k].append(v ** 2 % 7)
print({k: sum(v) for k, v in counts.items()}, f"{math.pi:>10.3f}", "%05d" % 42, "a,b".split(","))
print(functools.reduce(lambda a, b: a + b, [P(1), P(2, 2.0)]), 1 << 70, -7 // 2, -7 % 3, divmod(7, -2))
try:
    [][0]
except IndexError as e:
    print(e, sorted({3, 1, 2}, key=lambda x: -x), "abc"[::-1], {**{1: 2}, 3: 4})
