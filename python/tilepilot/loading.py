"""`tilepilot.load`: a program that `tilepilot generate` wrote, as a module of this process."""

import builtins
import hashlib
import importlib
import importlib.machinery
import json
import linecache
import pathlib
import sys
import types

import torch

from tilepilot.errors import TilePilotError, warn
from tilepilot.verified_model import Verification, verified_class

_FOLDER = "tilepilot.loaded"  # the package that loaded programs are modules of


class LoadError(TilePilotError, ImportError):
    """A file that is no program of ours."""


def load(path, *, strict=False, reference=None):
    path = pathlib.Path(path)
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise LoadError(f"cannot read `{path}`: {error}") from error
    return _module(str(path.absolute()), text, strict, _find_model(path.absolute(), text, reference))


def restored(path, text, strict, model, class_name):
    """A new object of a class of a program, for pickle: the program comes with it."""
    module = _module(path, text, strict, model)
    return _class_of(module, class_name)


def _class_of(module, name):
    made = getattr(module, name)
    return made.__new__(made)


def _module(path, text, strict, model):
    identity = hashlib.sha256(repr((path, text, strict, model)).encode()).hexdigest()[:12]
    stem = "".join(letter if letter.isalnum() else "_" for letter in pathlib.Path(path).stem)
    name = f"{_FOLDER}.{stem}_{identity}"
    if name in sys.modules:
        return sys.modules[name]
    module = _run(name, path, text)
    made = getattr(module, "ModelNew", None)
    if not (isinstance(made, type) and issubclass(made, torch.nn.Module)):
        del sys.modules[name]
        raise LoadError(f"`{path}` defines no `class ModelNew(nn.Module)`: give a file that `tilepilot generate` wrote")
    if model is None:
        message = (f"`{path}` has no certificate beside it that names its model: "
                   "nothing says for which inputs it was verified")
        if strict:
            del sys.modules[name]
            raise LoadError(message + "; give the model's file as `reference`")
        warn(message)
    else:
        verification = Verification(_reference_name(model), path, text, strict, model)
        module.ModelNew = verified_class(made, verification)
    return module


def _run(name, path, text):
    """Runs a program as the module `name`. What it imports as `tilelang` is ours."""
    _make_folder()
    module = types.ModuleType(name)
    module.__file__ = path
    module.__builtins__ = {**vars(builtins), "__import__": _import}
    # Tile programs are compiled from their source, also where the file is not there any more.
    linecache.cache[path] = (len(text), None, text.splitlines(keepends=True), path)
    try:
        code = compile(text, path, "exec")
    except (SyntaxError, ValueError) as error:
        raise LoadError(f"`{path}` is no Python program: {error}") from error
    sys.modules[name] = module
    try:
        exec(code, module.__dict__)
    except BaseException:
        del sys.modules[name]
        raise
    return module


def _make_folder():
    if _FOLDER not in sys.modules:
        folder = types.ModuleType(_FOLDER)
        folder.__path__ = []
        folder.__spec__ = importlib.machinery.ModuleSpec(_FOLDER, None, is_package=True)
        sys.modules[_FOLDER] = folder


def _import(name, globals=None, locals=None, fromlist=(), level=0):
    if level == 0 and (name == "tilelang" or name.startswith("tilelang.")):
        module = importlib.import_module(f"tilepilot.{name}")
        return module if fromlist else importlib.import_module("tilepilot.tilelang")
    return builtins.__import__(name, globals, locals, fromlist, level)


def _find_model(path, text, reference):
    """The reference model as (file, text): the given one, or the one that the program's certificate names."""
    if reference is not None:
        return _read_model(pathlib.Path(reference).absolute())
    try:
        certificate = json.loads(path.with_suffix(".cert.json").read_text(encoding="utf-8"))
        program, model = certificate["program"]["sha256"], certificate["model"]
        file, digest = model["file"], model["sha256"]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    if hashlib.sha256(text.encode()).hexdigest() != program:
        warn(f"`{path}` was changed after its certificate was written: it is not verified any more")
        return None
    found = (path.parent / file).resolve()
    try:
        read = _read_model(found)
    except LoadError:
        return None
    if hashlib.sha256(read[1].encode()).hexdigest() != digest:
        warn(f"`{found}` was changed after `{path}` was verified against it: it cannot stand in for it")
        return None
    return read


def _read_model(file):
    try:
        return str(file), file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise LoadError(f"cannot read the model `{file}`: {error}") from error


def _reference_name(model):
    """The name of the module that the model's file becomes when it is needed."""
    return f"{_FOLDER}.reference_{hashlib.sha256(repr(model).encode()).hexdigest()[:12]}"


def reference_module(name, model):
    return sys.modules.get(name) or _run(name, *model)
