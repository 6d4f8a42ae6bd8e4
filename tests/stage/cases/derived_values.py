# Classes that derive from list, dict, set and str.
import copy
from enum import Enum


class Stack(list):
    """A list with a name."""
    limit = 3

    def __init__(self, items=(), name="stack"):
        super().__init__(items)
        self.name = name

    def push(self, item):
        if len(self) >= self.limit:
            raise OverflowError(self.name)
        self.append(item)
        return self

    def __getitem__(self, index):
        if isinstance(index, str):
            return getattr(self, index)
        return super().__getitem__(index)

    def __repr__(self):
        return f"Stack({super().__repr__()})"


s = Stack([1, 2], name="s")
print(s, len(s), s[0], s[-1], s["name"], s[0:1], type(s[0:1]).__name__, bool(Stack()), isinstance(s, list))
print(s.push(3), 2 in s, list(s), [x * 2 for x in s], sorted(s, reverse=True), sum(s), max(s), s.index(2), s.count(1))
try:
    s.push(4)
except OverflowError as error:
    print("full", error)
s[0] = 10
del s[1]
s += [7]
print(s, s == [10, 3, 7], [10, 3, 7] == s, s != [1], s < [11], s + [1], [1] + s, s * 2, 2 * s, type(s + [1]).__name__)
s.extend(x for x in "ab")
s.insert(0, None)
print(s.pop(), s, type(s).__name__, s.copy(), type(s.copy()).__name__)
a, *b = Stack("xyz")
print(a, b, *Stack([1, 2]))
s.sort(key=str)
s.reverse()
print(s, list(reversed(s)), list(enumerate(Stack("ab"))), list(zip(Stack("ab"), [1, 2])), tuple(s))
print(list.__len__(s), list.append(s, 5), s[-1], Stack.mro()[1] if False else Stack.__mro__[1] is list)
try:
    hash(s)
except TypeError as error:
    print(error)
alias = s
alias *= 2
print(alias is s, len(s))


class Loud(list):
    def __iter__(self):
        for item in super().__iter__():
            yield f"<{item}>"

    def append(self, item):
        super().append(item * 2)

    def __contains__(self, item):
        return item == "magic" or super().__contains__(item)


loud = Loud([1, 2])
loud.append(3)
print(list(loud), "magic" in loud, 6 in loud, 3 in loud, loud, len(loud), [x for x in loud])


class Registry(dict):
    def register(self, name):
        def decorate(function):
            self[name] = function
            return function
        return decorate

    def __missing__(self, key):
        return f"no {key}"

    def __setitem__(self, key, value):
        super().__setitem__(key.lower(), value)


r = Registry(A=1)
r["B"] = 2


@r.register("Three")
def three():
    return 3


print(sorted(r), r["A"], r["b"], r["zzz"], r.get("zzz"), r["three"](), "zzz" in r, len(r))
r.update(C=4)
print(list(r.items())[0], r.pop("C"), r.setdefault("D", 5), r.keys() >= {"A"}, dict(r)["D"], {**r}["D"])
print(r == {"A": 1}, isinstance(r, dict), type(r).__name__, type(r.copy()).__name__, bool(Registry()))


def named(**options):
    return sorted(options)


print(named(**Registry(x=1, y=2)), {**Registry(x=1)}, dict(Registry(x=1), y=2), Registry({"k": 1}) | {"l": 2})
plain = {}
plain.__setitem__("k", 1)
print(plain.__getitem__("k"), [3, 4].__len__(), {1, 2}.__contains__(1), [1].__add__([2]), plain.__contains__("q"))


class Attributes(dict):
    __getattr__ = dict.__getitem__
    __setattr__ = dict.__setitem__


config = Attributes(width=3)
config.height = 4
print(config, config.width + config["height"], sorted(config))


class Open(dict):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.__dict__ = self


o = Open(a=1)
o.b = 2
o["c"] = 3
print(o, o.a, o.b, o.c, sorted(o.__dict__))


class Default(dict):
    def __init__(self, make):
        self.make = make

    def __missing__(self, key):
        self[key] = value = self.make(key)
        return value


d = Default(lambda key: key * 2)
print(d[4], d[5], d, d.make(1))


class Names(set):
    def add(self, item):
        super().add(item.upper())


n = Names(["x"])
n.add("y")
print(sorted(n), "Y" in n, len(n), n == {"x", "Y"}, sorted(n | {"z"}), sorted({"z"} | n), sorted(n - {"x"}), n > {"x"})
n |= {"w"}
print(type(n).__name__, sorted(n))


class Label(str):
    def __new__(cls, text, size=1):
        self = super().__new__(cls, text.strip())
        self.size = size
        return self

    def shout(self):
        return self.upper() + "!"


label = Label("  abc ", size=2)
print(label, repr(label), len(label), label.size, label.shout(), label + "d", "x" + label, label * 2, label[1], label[::-1])
print(label == "abc", "abc" == label, {label: 1}["abc"], {"abc": 2}[label], hash(label) == hash("abc"), label in "xabcx")
print(",".join([label, Label("q")]), f"{label:>6}|", "%s" % label, label.startswith("a"), sorted([Label("b"), label]))
print(isinstance(label, str), type(label).__name__, type(label + "").__name__, label.split("b"), list(label), "b" in label)


class Empty(str):
    pass


print(repr(Empty()), repr(Empty(5)), bool(Empty("")), Empty("x") < "y", Empty("%d") % 3)


class Mode(str, Enum):
    FAST = "fast"
    SLOW = "slow"

    def describe(self):
        return f"{self.name}={self.value}"


print(Mode.FAST, repr(Mode.FAST), Mode.FAST == "fast", Mode("slow"), Mode.FAST.upper(), Mode.SLOW.describe(), len(list(Mode)))
print({"fast": 1}[Mode.FAST], Mode.FAST in ("fast",), [m.value for m in Mode], f"{Mode.FAST}", Mode["SLOW"] is Mode.SLOW)
print(isinstance(Mode.FAST, str), "x-" + Mode.FAST, Mode.FAST.value, ",".join([Mode.FAST, "z"]))


class Mixin:
    def total(self):
        return sum(self)


class Numbers(Mixin, list):
    pass


class More(Numbers):
    def total(self):
        return super().total() + 1


print(Numbers([1, 2]).total(), More([1, 2]).total(), More([1, 2]), isinstance(More(), Numbers))
first = Stack([[1], 2], name="first")
second, third = copy.copy(first), copy.deepcopy(first)
first[0].append(9)
print(second, third, second.name, type(third).__name__, second is first)
nested = Stack()
nested.append(nested) if False else nested.append([1])
print(nested, [Stack([1])], {"k": Stack([2])}, (Registry(a=1),))
print([type(x).__name__ for x in (Stack(), Registry(), Names(), Label("x"))])
print(f"{Label} {str} {Stack!r}")
