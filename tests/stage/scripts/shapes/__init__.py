unit = 1
from .square import area  # noqa: F401
from . import circle  # noqa: F401

unit = circle.UNIT + 1
