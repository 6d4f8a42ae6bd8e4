# functools beyond partial and caches; descriptors, and classes that hear of their members and heirs.
from functools import cache, cached_property, lru_cache, partial, partialmethod, singledispatch, total_ordering


@lru_cache(maxsize=2)
def sq(x):
    print("calc", x)
    return x * x


print(sq(1), sq(1), sq(2), sq(3), sq(1), sq.cache_info())
sq.cache_clear()
print(sq(1), sq.cache_info().misses)


class C:
    def __init__(self):
        self.n = 0

    @cached_property
    def v(self):
        self.n += 1
        return self.n * 10


    @lru_cache(None)
    def times(self, k):
        print("times", k)
        return self.n * k


c = C()
print(c.v, c.v, c.n, c.__dict__, c.times(3), c.times(3))


@singledispatch
def show(x):
    return "obj"


@show.register
def _(x: int):
    return "int"


@show.register(str)
def _(x):
    return "str"


@show.register(list)
@show.register(tuple)
def _(x):
    return "seq"


print(show(1), show("a"), show(1.5), show([1]), show((1,)), show(True), show.__name__)


class PM:
    def base(self, a, b):
        return (a, b)

    p = partialmethod(base, 1)


print(PM().p(2))


@total_ordering
class T:
    def __init__(self, v):
        self.v = v

    def __eq__(self, o):
        return self.v == o.v

    def __lt__(self, o):
        return self.v < o.v


print(T(1) <= T(1), T(2) > T(1), T(2) >= T(3))


class Desc:
    def __set_name__(self, owner, name):
        self.name = name

    def __get__(self, obj, owner=None):
        return self if obj is None else ("got", self.name)

    def __set__(self, obj, v):
        print("set", self.name, v)


class H:
    d = Desc()


h = H()
print(h.d)
h.d = 4
print(type(H.d).__name__)


class Base:
    heirs = []

    def __init_subclass__(cls, tag=None, **kw):
        super().__init_subclass__(**kw)
        Base.heirs.append((cls.__name__, tag))


class X(Base, tag=1):
    pass


class Y(X):
    pass


print(Base.heirs)


class M:
    def __new__(cls, *a):
        print("new", cls.__name__, a)
        return super().__new__(cls)

    def __init__(self, *a):
        print("init", a)


M(1, 2)


class Single:
    _only = None

    def __new__(cls):
        if cls._only is None:
            cls._only = object.__new__(cls)
        return cls._only


print(Single() is Single())


class A:
    def __init__(self, v):
        self._v = v

    @property
    def v(self):
        return self._v

    @v.setter
    def v(self, x):
        self._v = x

    @v.deleter
    def v(self):
        print("deleted")
        self._v = None


a = A(3)
a.v = 4
print(a.v)
del a.v
print(a._v)
