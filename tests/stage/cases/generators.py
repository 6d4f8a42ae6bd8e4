# Generators run piece by piece: what they print shows when. Their ends, their errors, and contexts made of them.
def g():
    print("a"); x = yield 1
    print("b", x)
    try:
        y = yield 2
        print("c", y)
    except ValueError as e:
        print("caught", e)
        yield 99
    finally:
        print("fin")
    return "ret"
it = g()
print(next(it)); print(it.send(5)); print(it.throw(ValueError("v")))
try: next(it)
except StopIteration as e: print("stop", e.value, e.args)


def nat():
    n = 0
    while True:
        yield n
        n += 1


print(list(zip("abc", nat())))
print(next(x for x in nat() if x > 10), any(x > 3 for x in nat()), all(x < 7 for x in nat()))


def f():
    print("start")
    yield 1
g = f()
print("made")
h = (print("x", i) or i for i in g)
print("genexp")
print(next(h))
print(list(h))


def bad(): raise KeyError("first")
try:
    q = (x for x in bad())
except KeyError as e: print("at once", e)
q = (y for x in [1] for y in bad())
print("lazy")
try: next(q)
except KeyError as e: print("later", e)


def inner():
    try:
        r = yield 1
        print("inner got", r)
        r = yield 2
        print("inner got", r)
    finally:
        print("inner fin")
    return 7
def outer():
    v = yield from inner()
    print("v", v)
    w = yield from [10, 20]
    print("w", w)
    return 5
o = outer()
print(next(o), o.send("A"), o.send("B"), next(o))
try: next(o)
except StopIteration as e: print(e.value)
o = outer(); next(o)
o.close(); print("closed")
try: next(o)
except StopIteration: print("ended")
o = outer(); next(o)
try: o.throw(RuntimeError("boo"))
except RuntimeError as e: print("out", e)


def f():
    try:
        yield 1
    finally:
        print("cleanup")
for x in f():
    print(x); break
print("after")
def h():
    return next(f())
print(h())
g = f(); next(g); del g; print("del done")


def f():
    yield 1
    raise ValueError("inside")
try:
    for x in f(): print(x)
except ValueError as e: print(e)
def s():
    yield 1
    raise StopIteration
try: list(s())
except RuntimeError as e: print("RE", e)
try:
    g = f(); g.send(3)
except TypeError as e: print(e)
def ig():
    while True:
        try: yield 1
        except GeneratorExit: pass
g = ig(); next(g)
try: g.close()
except RuntimeError as e: print(e)


from contextlib import contextmanager, suppress, closing, nullcontext
@contextmanager
def cm(name, swallow=False):
    print("enter", name)
    try:
        yield name.upper()
    except ValueError as e:
        print("saw", e)
        if not swallow: raise
    finally:
        print("exit", name)
with cm("a") as a, cm("b", swallow=True) as b:
    print(a, b)
    raise ValueError("x")
print("next")
try:
    with cm("c"): raise ValueError("y")
except ValueError as e: print("out", e)
def early():
    with cm("d"):
        return 3
print(early())
for i in range(2):
    with cm("e"):
        continue
with suppress(KeyError, IndexError):
    {}[1]
with nullcontext(5) as n: print(n)
class C:
    def close(self): print("closed")
with closing(C()) as c: print(type(c).__name__)
class M:
    @contextmanager
    def go(self, v):
        self.v = v
        yield self
        self.v = None
m = M()
with m.go(3) as x: print(x.v)
print(m.v)


def tree(n):
    if n == 0: return
    yield from tree(n - 1)
    yield n
    yield from tree(n - 1)
print(list(tree(4)), sum(tree(6)))
d = {k: v for k, v in ((i, i * i) for i in range(3))}
print(d, set(i % 2 for i in range(5)), dict((c, 1) for c in "ab"), tuple(i for i in "xy"), sorted(i for i in [3,1]), max(i for i in [1,5,2]), ",".join(str(i) for i in range(3)))
print(*(i for i in range(3)))
a, *b = (i for i in range(4)); print(a, b)
class N:
    def __init__(self, v, kids=()): self.v, self.kids = v, kids
    def __iter__(self):
        yield self.v
        for k in self.kids: yield from k
print(list(N(1, [N(2), N(3, [N(4)])])), 4 in N(1,[N(4)]))
g = (i for i in range(3)); print(next(g), list(g), list(g))
print(type(g).__name__, type(tree(1)).__name__, iter(g) is g)
def counter():
    total = 0
    while True:
        v = yield total
        if v is None: return total
        total += v
c = counter(); next(c); c.send(3); print(c.send(4))
try: c.send(None)
except StopIteration as e: print(e.value)
def deleg(): r = yield from counter(); print("r", r)
c = deleg(); next(c); c.send(5)
try: c.send(None)
except StopIteration: print('s')
x = 10
gg = (x + i for i in range(2)); x = 20; print(list(gg))
fs = [lambda: i for i in range(3)]; print([f() for f in fs])
def nested():
    for i in range(2):
        yield (j * i for j in range(3))
print([list(q) for q in nested()])
print(sum((yield_ for yield_ in range(4)), 10), min((abs(v) for v in [-3, 2]), default=0))
def ge():
    try:
        raise KeyError('a')
    except KeyError:
        yield 1
        try: raise
        except KeyError as e: print('re', e)
print(list(ge()))
def gi(): yield
q = gi(); print(list(q))
