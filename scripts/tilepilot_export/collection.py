"""When Python looks for garbage."""

import contextlib
import gc


@contextlib.contextmanager
def no_collection():
    """While modules are loaded: they stay, and looking for garbage among them takes a quarter of an export's time."""
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()
