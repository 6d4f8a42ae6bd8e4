# match: every kind of pattern, guards, and what is bound when.
from collections import OrderedDict, defaultdict, namedtuple
from dataclasses import dataclass, field
from enum import Enum


class Color(Enum):
    RED = 1
    BLUE = 2


@dataclass
class Point:
    x: int
    y: int = 0
    tag: str = field(default="", kw_only=True)


class Sized:
    __match_args__ = ("width", "height")

    def __init__(self, width, height):
        self.width, self.height = width, height


Pair = namedtuple("Pair", "first second")
LIMIT = 10


class Limits:
    most = 7


def describe(value):
    match value:
        case None:
            return "none"
        case True | False as flag:
            return f"bool {flag}"
        case 0:
            return "zero"
        case -1 | -2.5:
            return "negative literal"
        case Limits.most:
            return "dotted name"
        case Color.RED:
            return "red"
        case Color():
            return f"another color {value.name}"
        case int(n) if n > 100:
            return f"big {n}"
        case int() | float() as number:
            return f"number {number}"
        case "":
            return "empty text"
        case "yes" | "no" as word:
            return f"answer {word}"
        case str(text):
            return f"text {text!r}"
        case []:
            return "empty sequence"
        case [x]:
            return f"one {x}"
        case Pair(first=1, second=b):
            return f"pair of 1 and {b}"
        case [1, *rest]:
            return f"1 then {rest}"
        case (x, [y, *_]):
            return f"nested {x} {y}"
        case [first, *middle, last]:
            return f"{first} .. {middle} .. {last}"
        case {"kind": "circle", "radius": r}:
            return f"circle {r}"
        case {"kind": kind, **rest}:
            return f"{kind} with {rest}"
        case {}:
            return f"mapping of {len(value)}"
        case Point(0, 0):
            return "origin"
        case Point(x=0, y=y) | Point(x=y, y=0):
            return f"on an axis {y}"
        case Point(x, y, tag=""):
            return f"point {x} {y}"
        case Point(tag=tag):
            return f"tagged {tag}"
        case Sized(w, height=h) if w == h:
            return f"square {w}"
        case Sized(w, h):
            return f"{w} by {h}"
        case set() | frozenset():
            return "set"
        case _:
            return f"something else: {type(value).__name__}"


VALUES = [None, True, False, 0, 0.0, -1, -2.5, 7, Color.RED, Color.BLUE, 101, 55, 1.5, "", "yes", "no", "maybe", [], (),
          [5], (6,), Pair(1, 2), Pair(3, 4), [1, 2, 3], (1,), [2, [3, 4]], [2, 3, 4], range(3), range(0),
          {"kind": "circle", "radius": 2}, {"kind": "box", "w": 1}, {}, {"a": 1}, OrderedDict(kind="x"),
          defaultdict(int), Point(0, 0), Point(0, 4), Point(4, 0), Point(1, 2), Point(1, 2, tag="t"), Sized(2, 2),
          Sized(2, 3), {1, 2}, frozenset(), b"ab", object, [[1, 2], [3]], "abc"]
for value in VALUES:
    print(describe(value))


def swap(command):
    match command.split():
        case ["go", ("north" | "south") as where]:
            return where
        case ["take", *things] if things:
            return things
        case ["quit" | "exit"]:
            return 0
    return "?"


for command in ["go north", "go west", "take", "take a b", "exit", "quit now"]:
    print(swap(command))

match 1, 2:
    case a, b:
        print(a + b)
match [1, 2, 3]:
    case [a, *_] if (total := a * 2) > 5:
        print("no")
    case [_, *rest]:
        print(a, total, rest)
match = {"match": 1}
case = match["match"]
print(match, case)
for each in [{"x": 1, "y": {"z": [1, 2]}}, {"x": 2}, {"y": {"z": []}}]:
    match each:
        case {"x": x, "y": {"z": [_, second]}}:
            print("deep", x, second)
        case {"x": int() as x}:
            print("shallow", x)
        case other:
            print("other", other)


class Base:
    pass


class Child(Base):
    __match_args__ = ("a",)
    a = 5


for each in (Base(), Child()):
    match each:
        case Child(5):
            print("child")
        case Base():
            print("base")
for wrong in ("Point(1, 2, 3)", "int(1, 2)"):
    try:
        match Point(1, 2) if wrong[0] == "P" else 3:
            case Point(1, 2, 3):
                print("never")
            case int(1, 2):
                print("never")
    except TypeError as error:
        print("TypeError", error)


def loop(items):
    for item in items:
        match item:
            case 0:
                continue
            case "stop":
                break
            case _:
                yield item


print(list(loop([1, 0, 2, "stop", 3])))


def closure(value):
    match value:
        case [x, y]:
            return lambda: (x, y)
        case _:
            return lambda: None


print(closure([1, 2])(), closure(3)())
counts = defaultdict(list)
match counts:
    case {"missing": _}:
        print("made one")
    case _:
        print(len(counts))
