# Dataclasses with every kind of field.
from dataclasses import dataclass, field, asdict, astuple, replace, fields, is_dataclass
@dataclass
class P:
    x: int
    y: float = 2.0
    tags: list = field(default_factory=list)
    hidden: int = field(default=0, repr=False, compare=False)
p = P(1); q = P(1, tags=[]); print(p, p == q, asdict(p), astuple(p), replace(p, x=5), [f.name for f in fields(P)], is_dataclass(p))
p.tags.append(3); print(q.tags, p.tags, p != q)
try: P()
except TypeError as e: print("TypeError")
@dataclass(frozen=True)
class F:
    a: int
    b: str = "q"
f = F(1); print(f, hash(f) == hash(F(1)), {f: 2}[F(1)])
try: f.a = 3
except Exception as e: print(isinstance(e, AttributeError), e)
@dataclass(order=True)
class O:
    k: int
    v: str = field(compare=False, default="")
print(O(1) < O(2), sorted([O(3), O(1)]), O(1, "a") <= O(1, "b"), max(O(1), O(4)))
@dataclass
class B(P):
    z: int = 9
    def __post_init__(self): self.w = self.x + self.z
print(B(1), B(1).w, B(1, 2.0, [], 0, 3))
@dataclass
class K:
    a: int
    _: int = 3
    def total(self): return self.a * 2
    @property
    def sq(self): return self.a ** 2
print(K(4).total(), K(4).sq)
@dataclass(kw_only=True)
class KW:
    a: int
    b: int = 2
print(KW(a=1))
@dataclass(eq=False)
class NE:
    a: int
print(NE(1) == NE(1))
@dataclass
class SL:
    a: int = 1
print(SL())
from dataclasses import dataclass, field, InitVar, KW_ONLY
from typing import ClassVar, Optional
@dataclass
class C:
    n: ClassVar[int] = 5
    a: int = 1
    scale: InitVar[int] = 2
    c: int = field(init=False)
    def __post_init__(self, scale): self.c = self.a * scale
print(C(3), C(3, 4).c, C.n)
@dataclass
class W:
    a: int
    _: KW_ONLY
    b: int = 2
print(W(1, b=3))
@dataclass(unsafe_hash=True)
class U:
    a: int
print(hash(U(1)) == hash(U(1)))
