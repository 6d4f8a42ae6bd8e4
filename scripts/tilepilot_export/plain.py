"""Values without tensors, as JSON."""

import math

import torch

from .errors import ExportError


def encode_plain(value):
    """An argument without tensors, as JSON; see docs/reference-format.md."""
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else {"float": str(value)}
    if isinstance(value, torch.dtype):
        return {"dtype": str(value).removeprefix("torch.")}
    if isinstance(value, torch.device):
        return {"device": str(value)}
    if isinstance(value, torch.layout):
        return {"layout": str(value).removeprefix("torch.")}
    if isinstance(value, torch.memory_format):
        return {"memory_format": str(value).removeprefix("torch.")}
    if isinstance(value, list):
        return [encode_plain(item) for item in value]
    if isinstance(value, tuple):
        return {"tuple": [encode_plain(item) for item in value]}
    if isinstance(value, dict) and all(isinstance(key, str) for key in value):
        return {"dict": [[key, encode_plain(item)] for key, item in value.items()]}
    raise ExportError("unsupported_value", f"a value of type `{type(value).__name__}` cannot be exported")
