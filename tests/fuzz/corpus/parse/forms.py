@decorator(1, *args, key=value, **rest)
class C(Base, metaclass=M):
    x: int = 0o17 + 0b11 - 0xFF_FF * 1_0.5e-3j if a else not b

    def method(self, a, /, b=1, *c, d: "text" = (), **e) -> None:
        """documentation"""
        global g
        nonlocal_ = [*a, *b][::2, ..., 1:]
        return f"{a!r:>{width}} {{}} {b=}" rf'\d{c}' "joined"


for i, (j, *k) in enumerate(x for y in z if y for x in y):
    while (n := n // 2) > 0 < 5 is not None in q:
        try:
            raise E(1) from e
        except (A, B) as e:
            del a.b[c], d
        else:
            continue
        finally:
            assert x, "text"
    else:
        break
with open(a) as (b, c), d as e.f:
    lambda x, *y, z=1, **w: (yield) if x else {**a, 'k': 1, }
import a.b.c as d, e
from ..f import (g as h, i,)
