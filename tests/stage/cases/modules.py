# The part of the standard library that programs may import.
import math
import itertools
import functools, operator
from collections import OrderedDict, defaultdict, Counter, namedtuple
from dataclasses import dataclass, field
from typing import List, Optional, Tuple, Dict, Any, Callable
import copy
from enum import Enum, IntEnum
from abc import ABC, abstractmethod
import math as m

print(math.pi, math.sqrt(2), math.ceil(2.1), math.floor(-2.1), math.log(8, 2), math.log2(8), m.prod([1, 2, 3]), math.gcd(12, 18), math.isnan(math.nan), math.inf)
print(math.exp(1), math.pow(2, 0.5), math.factorial(10), math.comb(5, 2), math.isqrt(17), math.hypot(3, 4), math.trunc(-2.7), math.copysign(1, -0.0), math.fsum([0.1] * 10))
print(list(itertools.product([1, 2], "ab")), list(itertools.permutations([1, 2, 3], 2)), list(itertools.combinations("abc", 2)))
print(list(itertools.chain([1], (2, 3))), list(itertools.islice(itertools.count(5, 2), 3)), list(itertools.accumulate([1, 2, 3])), list(itertools.product(range(2), repeat=2)))
print(list(itertools.zip_longest([1, 2], [3], fillvalue=0)), list(itertools.repeat(7, 2)), list(itertools.chain.from_iterable([[1], [2]])), list(itertools.takewhile(lambda v: v < 3, [1, 2, 3, 1])))
print(functools.reduce(lambda a, b: a * b, [1, 2, 3, 4]), functools.partial(pow, 2)(5), functools.partial(int, base=2)("11"))

@functools.lru_cache(maxsize=None)
def fib(n): return n if n < 2 else fib(n - 1) + fib(n - 2)
print(fib(80))

def logged(f):
    @functools.wraps(f)
    def inner(*a): return f(*a)
    return inner

@logged
def named(): "doc"
print(named.__name__, named.__doc__, operator.add(1, 2), operator.itemgetter(1)([5, 6]), sorted([{"k": 2}, {"k": 1}], key=operator.itemgetter("k")))

o = OrderedDict([("a", 1)]); o["b"] = 2; o.move_to_end("a"); print(list(o), o == {"b": 2, "a": 1}, isinstance(o, dict))
dd = defaultdict(list); dd["x"].append(1); dd["y"]; print(dict(dd), len(dd))
print(Counter("abca").most_common(1), Counter([1, 1, 2])[1], Counter()["z"])
Point = namedtuple("Point", ["x", "y"], defaults=[0])
p = Point(1); q = p._replace(y=5); x, y = q
print(p, q, q.x + q[1], x, y, p == (1, 0), isinstance(p, tuple), Point._fields, q._asdict())

@dataclass
class Config:
    name: str
    size: int = 3
    tags: List[str] = field(default_factory=list)
    def area(self) -> int: return self.size ** 2

c = Config("a"); c2 = Config("a", 3); c3 = Config(size=4, name="z", tags=["t"])
c.tags.append("x")
print(c, c == c2, c3.area(), c2.tags, c3)

def typed(a: Optional[int] = None, b: List[Tuple[int, ...]] = (), c: Dict[str, Any] = None, d: Callable[[int], int] = None, e: int | None = None, f: list[int] = None): return a
print(typed(3))

deep = {"a": [1, [2]]}; shallow = copy.copy(deep); real = copy.deepcopy(deep); deep["a"][1].append(3)
print(shallow, real)

class Color(Enum):
    RED = 1
    GREEN = "g"
print(Color.RED, Color.GREEN.value, Color.RED.name, Color.RED == Color.RED, Color.RED is Color(1), [c.name for c in Color], repr(Color.RED), Color["GREEN"].value)

class Shape(ABC):
    @abstractmethod
    def area(self): ...
class Square(Shape):
    def area(self): return 4
print(Square().area(), isinstance(Square(), Shape))
if __name__ == "__main__": print("main")
import numbers
from collections.abc import Callable as C, Iterable, Sequence
print(isinstance(3, numbers.Number), isinstance("a", numbers.Number), isinstance(len, C), isinstance(3, C), isinstance([1], Sequence), isinstance(3, Iterable), isinstance(3, object))
from typing import NamedTuple
class Tile(NamedTuple):
    m: int
    n: int = 64
print(Tile(1), Tile(1, n=2).n, Tile(3) == (3, 64))
