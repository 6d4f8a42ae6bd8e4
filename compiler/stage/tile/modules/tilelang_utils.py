# `tilelang.utils` for scripts.
from tilelang.utils.tensor import TensorSupplyType, get_tensor_supply, torch_assert_close
