from .absent import anything
