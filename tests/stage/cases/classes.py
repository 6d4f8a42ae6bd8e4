# Classes: inheritance, super, properties, operators, protocols.
class Base:
    kind = "base"
    count = 0

    def __init__(self, value):
        self.value = value
        Base.count += 1

    def describe(self):
        return f"{type(self).__name__}({self.value})"

    @property
    def double(self):
        return self.value * 2

    @double.setter
    def double(self, new):
        self.value = new // 2

    @staticmethod
    def helper(x):
        return x + 1

    @classmethod
    def create(cls, text):
        return cls(int(text))

    def __repr__(self):
        return "<" + self.describe() + ">"


class Left(Base):
    def __init__(self, value, extra=0):
        super().__init__(value)
        self.extra = extra

    def describe(self):
        return "left " + super().describe()


class Right(Base):
    kind = "right"

    def describe(self):
        return "right " + super().describe()


class Both(Left, Right):
    def describe(self):
        return "both " + super().describe()


b = Both(3, extra=4)
print(b, b.kind, b.double, b.extra, Base.count)
b.double = 20
print(b.value, Both.create("7"), Both.helper(1), b.helper(2))
print([c.__name__ for c in Both.__mro__])
print(isinstance(b, Base), isinstance(b, (int, Right)), issubclass(Both, Left), isinstance(3, Base))


class Vector:
    def __init__(self, *items): self.items = list(items)
    def __add__(self, other): return Vector(*[a + b for a, b in zip(self.items, other.items)])
    def __mul__(self, k): return Vector(*[a * k for a in self.items])
    def __rmul__(self, k): return self * k
    def __neg__(self): return self * -1
    def __eq__(self, other): return isinstance(other, Vector) and self.items == other.items
    def __hash__(self): return hash(tuple(self.items))
    def __len__(self): return len(self.items)
    def __getitem__(self, i): return self.items[i]
    def __setitem__(self, i, v): self.items[i] = v
    def __delitem__(self, i): del self.items[i]
    def __contains__(self, v): return v in self.items
    def __iter__(self): return iter(self.items)
    def __call__(self, x): return sum(a * x ** i for i, a in enumerate(self.items))
    def __bool__(self): return any(self.items)
    def __lt__(self, other): return self.items < other.items
    def __iadd__(self, other):
        self.items = [a + b for a, b in zip(self.items, other.items)]
        return self
    def __str__(self): return "V" + str(self.items)
    def __repr__(self): return "Vector" + repr(tuple(self.items))
    def __format__(self, spec): return "V:" + spec
    def __abs__(self): return sum(a * a for a in self.items) ** 0.5
    def __float__(self): return float(self.items[0])
    def __int__(self): return int(self.items[0])


u, v = Vector(1, 2), Vector(3, 4)
print(u + v, 2 * u, -u, u == Vector(1, 2), u != v, len(u), u[1], 3 in v, list(v), u(10))
print(bool(Vector(0, 0)), u < v, sorted([v, u]), {u: "u"}[Vector(1, 2)], f"{u} {u!r} {u:abc}")
w = u
w += v
u[0] = 9
print(u is w, u, abs(Vector(3, 4)), float(v), int(v), max([u, v]))
del w[0]
print(w, [*v, *u], not w)


class Countdown:
    def __init__(self, n): self.n = n
    def __iter__(self): return self
    def __next__(self):
        if self.n == 0:
            raise StopIteration
        self.n -= 1
        return self.n


print(list(Countdown(3)), sum(Countdown(4)), next(Countdown(9)))


class Sequence:
    def __getitem__(self, i):
        if i >= 3:
            raise IndexError("end")
        return i * i


print(list(Sequence()), 4 in Sequence(), [a for a in Sequence()])


class Dynamic:
    def __getattr__(self, name):
        if name.startswith("x"):
            return name.upper()
        raise AttributeError(name)


d = Dynamic()
d.y = 1
print(d.xyz, d.y, hasattr(d, "z"), getattr(d, "z", "none"), hasattr(d, "xa"))
setattr(d, "z", 5)
print(d.z, d.__dict__, vars(d))
del d.z
print(hasattr(d, "z"))


class Manager:
    def __init__(self, log, swallow=False): self.log, self.swallow = log, swallow
    def __enter__(self):
        self.log.append("enter")
        return self.log
    def __exit__(self, kind, error, trace):
        self.log.append("exit " + (kind.__name__ if kind else "clean"))
        return self.swallow


log = []
with Manager(log) as inner, Manager(log, swallow=True):
    inner.append("body")
    raise ValueError("swallowed")
print(log)
try:
    with Manager(log):
        raise KeyError("out")
except KeyError as e:
    print(e, log[-1])


class Meta:
    x = 1
    y = x + 1
    names = [n * 2 for n in (x, y)]
    def method(self, x=y): return x, self.names


print(Meta().method(), Meta.names, Meta.y)


class Empty(Base): pass
class NotReady:
    def __add__(self, o): return NotImplemented
    def __radd__(self, o): return "radd"
print(Empty(1).describe(), NotReady() .__radd__(1), 5 + NotReady())
print(type(1).__name__, type("s") is str, type(b) == Both, type(None).__name__)
f = b.describe
print(f(), callable(f), callable(3), Base.describe(b))

def function_with_class(n):
    class Local:
        size = n
        def get(self): return n + self.size
    return Local().get()
print(function_with_class(4))
