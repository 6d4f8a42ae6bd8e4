"""The package under the name `tilelang`, for scripts that were written for it."""

import importlib
import importlib.abc
import importlib.util
import sys

from tilepilot import shared_modules

_NAME = "tilelang"
_TVM = "tvm"  # the few names of it that the language has


def answer_to_the_name():
    """From now on `import tilelang` gives this package in this process, also where another one is installed."""
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder())
        sys.meta_path.append(_TvmFinder())


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
            raise ModuleNotFoundError(f"`{spec.name}` is not available here", name=spec.name) from None

    def exec_module(self, module):
        pass  # it has run under its own name


class _TvmFinder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def find_spec(self, name, path=None, target=None):
        if name != _TVM and not name.startswith(_TVM + ".") or not shared_modules.has(name):
            return None
        return importlib.util.spec_from_loader(name, self, is_package=True)

    def create_module(self, spec):
        return shared_modules.language_module(spec.name)

    def exec_module(self, module):
        pass
