import neighbour
import shapes
import shapes.square as square
import shapes.more.deep
from neighbour import LENGTH, area as area_of
from shapes import circle, unit
from shapes.more import *
from shapes.more.deep import name_of

print(neighbour.LENGTH, LENGTH, area_of(3), neighbour.__name__, __name__)
print(shapes.__name__, square.__name__, square.area(4), shapes.square is square, shapes.unit, unit)
print(circle.area(1), shapes.more.deep.depth, name_of(square), shared, shapes.more.deep.parent_unit)
print(neighbour.__file__ == __file__.replace("imports", "neighbour"), shapes.square.__package__, shapes.__package__)
neighbour.counter.append(1)


def late():
    import neighbour as again

    return again.counter


print(late(), late() is neighbour.counter)
try:
    from neighbour import absent
except ImportError as error:
    print(type(error).__name__, "absent" in str(error))
try:
    import no_such_neighbour
except ImportError:
    print("no such neighbour")
try:
    import no_such_neighbour.part
except (KeyError, ModuleNotFoundError) as error:
    print(type(error).__name__)
