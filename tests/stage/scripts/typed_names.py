from typing import NamedTuple, Protocol, TypedDict, get_type_hints, runtime_checkable


class Options(TypedDict, total=False):
    rows: int
    columns: int


@runtime_checkable
class Shaped(Protocol):
    def shape(self): ...


class Point(NamedTuple):
    x: int
    y: int = 2


def area(rows: int, columns: float) -> float:
    return rows * columns


print(Options(rows=3, columns=4), Point(1), get_type_hints(area))
