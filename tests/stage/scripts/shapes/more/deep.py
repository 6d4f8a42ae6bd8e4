from .. import unit as parent_unit

depth = 2


def name_of(module):
    return module.__name__.upper()
