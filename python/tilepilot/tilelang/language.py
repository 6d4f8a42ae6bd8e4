"""`T`: the names of the tile language. Inside a tile program our compiler gives them their meaning."""

from tilepilot import _core

_names = _core.module("tilelang.language")


def prim_func(func=None, **options):
    """Decorates a function that is a tile program."""
    if func is None:
        return lambda function: prim_func(function, **options)
    return _core.prim_func(func)


def macro(func=None):
    """Decorates a function that is traced where a tile program calls it."""
    return macro if func is None else _core.macro(func)


def __getattr__(name):
    if name == "__all__":
        return __dir__()
    if name.startswith("__") and name.endswith("__"):  # Python asks for these itself
        raise AttributeError(name)
    return getattr(_names, name)


def __dir__():
    return sorted({"prim_func", "macro", *_core.language_names()})
