"""`tilelang.utils`."""

from tilepilot.tilelang.utils.tensor import TensorSupplyType, torch_assert_close
