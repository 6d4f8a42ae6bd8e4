# Parameters of every kind, and `:=` inside comprehensions.
def outcome(call):
    try:
        return call()
    except TypeError as error:
        return f"TypeError {error}"


def positional(a, b=2, /):
    return a, b


def mixed(a, /, b, *, c, d=4):
    return a, b, c, d


def kinds(a, /, b=1, *rest, c, **more):
    return a, b, rest, c, sorted(more.items())


def swallow(a, /, **more):
    return a, more


print(outcome(lambda: positional(1)), outcome(lambda: positional(1, b=3)), outcome(lambda: positional(a=1)))
print(outcome(lambda: positional()), outcome(lambda: positional(1, 2, 3)))
print(outcome(lambda: mixed(1, 2, c=3)), outcome(lambda: mixed(1, b=2, c=3, d=5)), outcome(lambda: mixed(1, 2, 3)))
print(outcome(lambda: mixed(1, 2)), outcome(lambda: mixed(a=1, b=2, c=3)), outcome(lambda: mixed(1, 2, c=3, e=1)))
print(outcome(lambda: kinds(1, c=2)), outcome(lambda: kinds(1, 2, 3, 4, c=5, a=6, d=7)), outcome(lambda: kinds(1, 2, 3)))
print(swallow(1, a=2, b=3), outcome(lambda: swallow(a=1)), outcome(lambda: mixed(1, 2, c=3, c2=4)))
print(outcome(lambda: mixed(*[1], *[2], **{"c": 3}, **{"d": 5})))


def late(x, items=[], *, key=lambda v: -v, default=None):
    items.append(x)
    return sorted(items, key=key), default


print(late(1), late(2, default="d"), late(3, [5], key=abs))
f = lambda a, /, b=2, *c, d, **e: (a, b, c, d, e)
print(f(1, d=3), f(1, 5, 6, d=7, z=8))
print([y := x * 2 for x in range(3)], y, [(n := x, n + 1)[1] for x in range(2)], n)
print([last := i for i in range(5) if (half := i // 2) > 0], last, half)
print(any((found := v) > 3 for v in [1, 5, 2]), found)
print({k: (w := v) for k, v in {"a": 1, "b": 2}.items()}, w, {t := s for s in "ab"} == {"a", "b"}, t in "ab")


def inside():
    total = 0
    parts = [total := total + v for v in range(4)]
    return parts, total


def nested():
    rows = [[cell := r * c for c in range(2)] for r in range(3)]
    return rows, cell


print(inside(), nested())
while (count := len([z for z in range(3)])) and count > 5:
    pass
print(count, (lambda: (q := 5) + q)())


class Registry:
    found = {}

    def __init_subclass__(cls, /, name=None, **options):
        super().__init_subclass__(**options)
        Registry.found[name or cls.__name__] = cls


class One(Registry):
    pass


class Two(One, name="zwei"):
    pass


print(sorted(Registry.found), Registry.found["zwei"] is Two)
try:
    class Bad(Registry, other=1):
        pass
except TypeError as error:
    print("TypeError")
