"""The folder of a reference (docs/reference-format.md)."""

import json
import os
import shutil
import tempfile

from tilepilot_export.errors import ExportError, first_line


def write_folder(folder, reference, weights):
    """The folder appears complete or not at all; an older one is replaced."""
    parent = os.path.dirname(folder)
    try:
        os.makedirs(parent, exist_ok=True)
        fresh = tempfile.mkdtemp(prefix=".reference-", dir=parent)
    except OSError as error:
        raise ExportError("cannot_write", f"`{folder}` cannot be written: {first_line(error)}") from None
    try:
        weights.write(os.path.join(fresh, "weights.safetensors"))
        with open(os.path.join(fresh, "reference.json"), "w", encoding="utf-8") as file:
            json.dump(reference, file, separators=(",", ":"), allow_nan=False)
        os.chmod(fresh, 0o755)
        if os.path.isdir(folder) and os.listdir(folder):
            if not os.path.exists(os.path.join(folder, "reference.json")):
                raise ExportError("cannot_write", f"`{folder}` exists and is not an exported reference")
            old = tempfile.mkdtemp(prefix=".old-", dir=parent)
            os.rename(folder, os.path.join(old, "reference"))
            os.rename(fresh, folder)
            shutil.rmtree(old, ignore_errors=True)
        else:
            os.rename(fresh, folder)
    except OSError as error:
        raise ExportError("cannot_write", f"`{folder}` cannot be written: {first_line(error)}") from None
    finally:
        shutil.rmtree(fresh, ignore_errors=True)
