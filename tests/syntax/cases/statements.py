"""Documentation
with "two" lines \\ and a quote at the end\""""
import a, b.c as d, e.f.g
from . import a
from ...b.c import (d as e, f,)
from .... import g
from h import *
x = y = z
a, *b = c
(a, [b, c]), d.e, f[0] = g
x: int
x: int = 1
self.x: T.Tensor[1, 2] = yield_
a += 1; b -= 2; c *= 3; d @= 4; e /= 5; f //= 6; g %= 7; h **= 8
a <<= 1; b >>= 2; c &= 3; d |= 4; e ^= 5
pass
del a, b[0], (c.d, e)
assert a
assert a, "message"
global u, v
raise
raise A
raise A from b
if a: b
if (n := f()) > 1:
    b
elif c:
    d
elif e:
    pass
else:
    f; g
if a:
    b
else:
    if c:
        d
    e
for i in range(3): continue
for i, (j, *k) in *a, b:
    if i:
        break
else:
    pass
while True:
    break
else:
    c
with a: pass
with a as b, c.d() as (e, f), g as h[0]:
    pass
with (a as b, c):
    pass
with (a, b) as c:
    pass
with ((a, b)):
    pass
with (a, b):
    pass
with (a), b:
    pass
with (x for x, y in z):
    pass
try:
    a
except:
    b
try:
    a
except A:
    b
except (B, C) as c:
    raise
else:
    d
finally:
    e
try:
    a
finally:
    b
@a.b(c)
@d
def f(a, b: int, /, c=1, d: str = "x", *args: *Ts, e, g=2, **kwargs: int) -> None:
    """One line."""
    nonlocal_ = 1
    def inner(*, x):
        nonlocal nonlocal_
        yield
        y = yield 1, 2
        yield from x
        z = [(yield), await_]
        return
    return 1, *a
class A: pass
class B(A, metaclass=M, *c, **d):
    x = 1

    @property
    def y(self): return self.x
match = 1
match(x)
match[x] = case = type
type(x), match.y
type = match
match x, y:
    case 1 | "two" | None | -3: pass
    case [a, (b, *_), *rest] if a > b:
        z = rest
    case {"k": v, A.B: [w], **more}: pass
    case A(), B(p, q=(1 | 2) as r): pass
    case a.b: pass
    case (only): pass
