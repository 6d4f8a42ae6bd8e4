"""`tilepilot.load`: a program that `tilepilot generate` wrote, as a module of this process."""

import builtins
import dataclasses
import hashlib
import importlib.machinery
import json
import linecache
import pathlib
import sys
import types

import torch

from tilepilot.errors import TilePilotError, warn
from tilepilot.locks import ForkSafeLock
from tilepilot.shared_modules import import_ours
from tilepilot.verified_model import Verification, verified_class

_lock = ForkSafeLock()
_FOLDER = "tilepilot.loaded"  # the package that loaded programs are modules of


class LoadError(TilePilotError, ImportError):
    """A file that is no program of ours."""


def load(path, *, strict=False, reference=None):
    path = pathlib.Path(path)
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise LoadError(f"cannot read `{path}`: {error}") from error
    return _module(str(path.absolute()), text, strict, _evidence(path.absolute(), text, reference))


def restored(path, text, strict, evidence):
    """A new `ModelNew` of a program, for pickle: the program comes with it."""
    made = _module(path, text, strict, evidence).ModelNew
    return made.__new__(made)


def _module(path, text, strict, evidence):
    identity = _digest(repr((path, text, strict, evidence)))[:12]
    stem = "".join(letter if letter.isalnum() else "_" for letter in pathlib.Path(path).stem)
    name = f"{_FOLDER}.{stem}_{identity}"
    with _lock:
        return sys.modules.get(name) or _new_module(name, path, text, strict, evidence)


def _new_module(name, path, text, strict, evidence):
    module = _run(name, path, text)
    made = getattr(module, "ModelNew", None)
    if not (isinstance(made, type) and issubclass(made, torch.nn.Module)):
        del sys.modules[name]
        raise LoadError(f"`{path}` defines no `class ModelNew(nn.Module)`: give a file that `tilepilot generate` wrote")
    if evidence is None:
        message = (f"`{path}` has no certificate beside it that is for the program and its model as they are: "
                   "nothing says for which inputs it was verified")
        if strict:
            del sys.modules[name]
            raise LoadError(message + "; give the model's file as `reference`")
        warn(message)
    else:
        module.ModelNew = verified_class(made, Verification(path, text, strict, evidence))
    return module


def _run(name, path, text):
    """Runs a program as the module `name`. What it imports as `tilelang` is ours."""
    _make_folder()
    module = types.ModuleType(name)
    module.__file__ = path
    module.__builtins__ = {**vars(builtins), "__import__": import_ours}
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


@dataclasses.dataclass(frozen=True)
class Evidence:
    """What says for which inputs a program was verified."""

    model: tuple  # file and text of the reference model
    certificate: str  # "" where there is none


def _evidence(path, text, reference):
    """Of the certificate beside the program, or the given model alone; None: there is neither."""
    if reference is not None:
        model = _read_model(pathlib.Path(reference).absolute())
        return Evidence(model, _certificate_of(path, text, model))
    try:
        facts = json.loads(_certificate_text(path))
        model = _read_model((path.parent / facts["model"]["file"]).resolve())
    except (LoadError, ValueError, KeyError, TypeError):
        return None
    certificate = _certificate_of(path, text, model)
    return Evidence(model, certificate) if certificate else None


def _certificate_text(path):
    try:
        return path.with_suffix(".cert.json").read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return ""


def _certificate_of(path, text, model):
    """The certificate's text where it is for this program and this model, else ""."""
    certificate = _certificate_text(path)
    try:
        facts = json.loads(certificate)
        program, judged = facts["program"]["sha256"], facts["model"]["sha256"]
    except (ValueError, KeyError, TypeError):
        return ""
    return certificate if (program, judged) == (_digest(text), _digest(model[1])) else ""


def _digest(text):
    return hashlib.sha256(text.encode()).hexdigest()


def _read_model(file):
    try:
        return str(file), file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise LoadError(f"cannot read the model `{file}`: {error}") from error


def reference_module(evidence):
    """The model's file as a module."""
    name = f"{_FOLDER}.reference_{_digest(repr(evidence.model))[:12]}"
    with _lock:
        return sys.modules.get(name) or _run(name, *evidence.model)
