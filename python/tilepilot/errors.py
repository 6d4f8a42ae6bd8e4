"""What the compiler says, as exceptions and warnings. Their text has the line of the program, with carets."""

import json
import os
import sys
import warnings


class TilePilotError(Exception):
    """Base of all errors. `kind` names the diagnostic, `details` is all of it."""

    kind = ""
    details = {}


class CompileError(TilePilotError):
    """A tile program that cannot be compiled."""


class NameError(CompileError, AttributeError):
    """A name that the language or a value does not have."""


class ArgumentError(TilePilotError, TypeError, ValueError):
    """A call of a kernel with other tensors than it takes."""


class ToolchainError(TilePilotError, RuntimeError):
    """The C++ compiler, its cache or what it made cannot be used."""


class KernelError(TilePilotError, RuntimeError):
    """A kernel that found something wrong while it ran."""


class TilePilotWarning(UserWarning):
    """Something that works, but not as it may have been meant."""


CLASSES = {
    "bad_kernel_argument": ArgumentError,
    "wrong_arguments": ArgumentError,
    "unknown_attribute": NameError,
    "unknown_tile_name": NameError,
    "compiler_missing": ToolchainError,
    "nvrtc_missing": ToolchainError,
    "driver_missing": ToolchainError,
    "compiler_failed": ToolchainError,
    "load_failed": ToolchainError,
    "cache_unwritable": ToolchainError,
    "not_installed": ToolchainError,
    "device_failed": KernelError,
    "deadlock": KernelError,
    "assertion_failed": KernelError,
    "outside_tile": KernelError,
    "out_of_memory": KernelError,
}


def exception_for(kind, text, details):
    """The exception for a diagnostic: its kind, its rendered text, all of it as JSON."""
    exception = CLASSES.get(kind, CompileError)(text.removesuffix("\n").removeprefix("error: "))
    exception.kind = kind
    exception.details = json.loads(details)
    return exception


def warn(text, category=TilePilotWarning):
    """A warning at the line of the user's that led here."""
    libraries = [os.path.dirname(__file__) + os.sep, "<tilepilot."]
    if "torch" in sys.modules:
        libraries.append(os.path.dirname(sys.modules["torch"].__file__) + os.sep)
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and frame.f_code.co_filename.startswith(tuple(libraries)):
        level, frame = level + 1, frame.f_back
    if frame.f_globals.get("__name__", "").startswith("tilepilot.loaded."):
        return  # what the compiler says to the author of a program was said when it was judged
    warnings.warn(text.removesuffix("\n").removeprefix("warning: "), category, stacklevel=level)
