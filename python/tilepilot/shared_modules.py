"""The modules of `tilelang` that are written in Python and that the command `tilepilot run` has, too: their texts are in
the extension (compiler/stage/tile/library/modules.cpp lists them). They run as `tilepilot.tilelang.NAME`, and what they
import as `tilelang` is this package, whatever has that name elsewhere in the process."""

import builtins
import importlib
import importlib.abc
import importlib.machinery
import linecache
import sys
import types

from tilepilot import _core

_PACKAGE = "tilepilot."
_OWN = "_tilepilot_"  # modules of tilepilot.scripts
_texts = _core.embedded_modules()
# What the language's own modules lack, and others of ours are.
_PARTS = {("tvm", "testing"): "tilepilot.tilelang.testing"}


def answer():
    """From now on `import tilepilot.tilelang.NAME` finds them, after the files of the package."""
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.append(_Finder())


def has(name):
    """Whether there is such a module, as `tilelang.testing`."""
    return name in _texts or _language_values(name) is not None


def import_ours(name, globals=None, locals=None, fromlist=(), level=0):
    """`__import__` for code of ours and of loaded programs."""
    if level == 0 and name.startswith(_OWN):
        return importlib.import_module(f"tilepilot.scripts.{name.removeprefix(_OWN)}")
    if level == 0 and (name == "tilelang" or name.startswith("tilelang.")):
        module = builtins.__import__(_PACKAGE + name, globals, locals, fromlist, 0)
        return module if fromlist else sys.modules["tilepilot.tilelang"]
    return builtins.__import__(name, globals, locals, fromlist, level)


def run_text(module, text):
    """Runs a text of ours as the module. Its functions have a source, so that they can be tile programs."""
    path = f"<{module.__name__}>"
    module.__file__ = path
    module.__builtins__ = {**vars(builtins), "__import__": import_ours}
    linecache.cache[path] = (len(text), None, text.splitlines(keepends=True), path)
    exec(compile(text, path, "exec"), module.__dict__)


def _language_values(name):
    """A module that the language has, without Python code; None: it has none of this name."""
    try:
        return _core.module(name)
    except ImportError:
        return None


def language_module(name):
    values = _language_values(name)
    if values is None:
        raise ModuleNotFoundError(f"`{name}` is not available here", name=name)
    module = types.ModuleType(name)
    module.__path__ = []
    module.__getattr__ = _attribute_of(name, values)
    return module


def _attribute_of(name, values):
    def attribute(wanted):
        if wanted.startswith("__"):
            raise AttributeError(wanted)
        if (name, wanted) in _PARTS:
            return importlib.import_module(_PARTS[name, wanted])
        return getattr(values, wanted)

    return attribute


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def find_spec(self, name, path=None, target=None):
        ours = name.removeprefix(_PACKAGE)
        if not name.startswith("tilepilot.tilelang.") or not has(ours):
            return None
        return importlib.machinery.ModuleSpec(name, self, is_package=True)

    def create_module(self, spec):
        name = spec.name.removeprefix(_PACKAGE)
        return None if name in _texts else language_module(name)

    def exec_module(self, module):
        text = _texts.get(module.__spec__.name.removeprefix(_PACKAGE))
        if text is not None:
            run_text(module, text)
