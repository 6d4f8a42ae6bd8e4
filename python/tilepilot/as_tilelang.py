"""The package under the name `tilelang`, for scripts that were written for it."""

import importlib
import importlib.abc
import importlib.util
import sys
import types

from tilepilot import _core

_NAME = "tilelang"


def answer_to_the_name():
    """From now on `import tilelang` gives this package in this process, also where another one is installed."""
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder())


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def find_spec(self, name, path=None, target=None):
        if name != _NAME and not name.startswith(_NAME + "."):
            return None
        return importlib.util.spec_from_loader(name, self, is_package=True)

    def create_module(self, spec):
        try:
            return importlib.import_module(f"tilepilot.{spec.name}")
        except ModuleNotFoundError as error:
            if error.name is None or not error.name.startswith("tilepilot."):
                raise
        return _language_module(spec.name)

    def exec_module(self, module):
        pass  # it has run under its own name


def _language_module(name):
    """A module that the language has and Python code of ours does not stand for."""
    try:
        values = _core.module(name)
    except ImportError as error:
        raise ModuleNotFoundError(f"`{name}` is not available here", name=name) from error
    module = types.ModuleType(name)
    module.__path__ = []

    def attribute(wanted):
        if wanted.startswith("__"):
            raise AttributeError(wanted)
        return getattr(values, wanted)

    module.__getattr__ = attribute
    return module
