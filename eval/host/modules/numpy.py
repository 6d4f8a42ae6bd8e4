# `numpy`, as far as programs use it beside torch: arrays are tensors of LibTorch with numpy's names. Random
# numbers come from torch's generator: a seed repeats them, but they are not the numbers that NumPy draws.
import math

import torch

pi, e, inf, nan = math.pi, math.e, math.inf, math.nan
newaxis = None


class dtype:
    """An element type. Called, it makes a number of that type."""

    def __init__(self, name):
        self.name = name.name if isinstance(name, dtype) else str(name)
        self.torch = getattr(torch, "bool" if self.name == "bool_" else self.name)
        self.itemsize = self.torch.itemsize

    def __call__(self, value=0):
        return torch.tensor(value, dtype=self.torch).item()

    def __eq__(self, other):
        return torch_type(other) == self.torch

    def __hash__(self):
        return hash(self.torch)

    def __repr__(self):
        return f"dtype('{self.name}')"

    __str__ = __repr__


def torch_type(kind):
    """The torch dtype that a dtype, a name or a type of Python stands for; None for None."""
    python = {float: torch.float64, int: torch.int64, bool: torch.bool}
    if kind is None:
        return None
    if isinstance(kind, dtype):
        return kind.torch
    if isinstance(kind, str):
        return dtype(kind).torch
    return python.get(kind, kind)


float16, float32, float64 = dtype("float16"), dtype("float32"), dtype("float64")
int8, int16, int32, int64 = dtype("int8"), dtype("int16"), dtype("int32"), dtype("int64")
uint8, uint16, uint32 = dtype("uint8"), dtype("uint16"), dtype("uint32")
bool_ = dtype("bool_")
float_, int_, single, double = float64, int64, float32, float64
NAMED = (float16, float32, float64, int8, int16, int32, int64, uint8, uint16, uint32, bool_)


def tensor_of(value, kind=None):
    """A tensor of what NumPy would make an array of: Python's numbers are 64 bits wide."""
    if isinstance(value, ndarray):
        result = value.tensor
    elif isinstance(value, torch.Tensor):
        result = value.detach()
    else:
        value = [item.tensor.tolist() if isinstance(item, ndarray) else item for item in value] \
            if isinstance(value, (list, tuple)) else value
        result = torch.tensor(value)
        if result.dtype == torch.float32:
            result = torch.tensor(value, dtype=torch.float64)
    return result if kind is None else result.to(torch_type(kind))


def wrapped(result):
    """An array, or a number for a result without axes."""
    if isinstance(result, torch.Tensor):
        return ndarray(result) if result.dim() > 0 else result.item()
    return result


def index_tensor(index):
    if isinstance(index, tuple):
        return tuple(index_tensor(each) for each in index)
    return index.tensor if isinstance(index, ndarray) else index


class ndarray:
    def __init__(self, tensor):
        self.tensor = tensor

    @property
    def shape(self):
        return tuple(self.tensor.shape)

    @property
    def ndim(self):
        return self.tensor.dim()

    @property
    def size(self):
        return self.tensor.numel()

    @property
    def dtype(self):
        return next(each for each in NAMED if each.torch == self.tensor.dtype)

    @property
    def T(self):
        return ndarray(self.tensor.permute(list(range(self.ndim))[::-1]))

    def astype(self, kind):
        return ndarray(self.tensor.to(torch_type(kind), copy=True))

    def view(self, kind):
        return ndarray(self.tensor.view(torch_type(kind)))

    def reshape(self, *shape):
        return ndarray(self.tensor.reshape(shape[0] if len(shape) == 1 else shape))

    def transpose(self, *axes):
        axes = axes[0] if len(axes) == 1 and isinstance(axes[0], (list, tuple)) else axes
        return ndarray(self.tensor.permute(axes)) if axes else self.T

    def flatten(self):
        return ndarray(self.tensor.flatten().clone())

    def ravel(self):
        return ndarray(self.tensor.flatten())

    def copy(self):
        return ndarray(self.tensor.clone())

    def tolist(self):
        return self.tensor.tolist()

    def item(self):
        return self.tensor.item()

    def fill(self, value):
        self.tensor.fill_(value)

    def sum(self, axis=None):
        return sum(self, axis)

    def mean(self, axis=None):
        return mean(self, axis)

    def std(self, axis=None):
        return std(self, axis)

    def max(self, axis=None):
        return max(self, axis)

    def min(self, axis=None):
        return min(self, axis)

    def cumsum(self, axis=None):
        return wrapped(self.tensor.flatten().cumsum(0) if axis is None else self.tensor.cumsum(axis))

    def argmax(self, axis=None):
        return wrapped(self.tensor.argmax(axis))

    def argmin(self, axis=None):
        return wrapped(self.tensor.argmin(axis))

    def all(self):
        return self.tensor.bool().all().item()

    def any(self):
        return self.tensor.bool().any().item()

    def __len__(self):
        return len(self.tensor)

    def __iter__(self):
        return iter([wrapped(row) for row in self.tensor])

    def __getitem__(self, index):
        return wrapped(self.tensor[index_tensor(index)])

    def __setitem__(self, index, value):
        self.tensor[index_tensor(index)] = value.tensor if isinstance(value, ndarray) else value

    def __bool__(self):
        return bool(self.tensor)

    def __float__(self):
        return float(self.tensor)

    def __int__(self):
        return int(self.tensor)

    def __neg__(self):
        return wrapped(-self.tensor)

    def __invert__(self):
        return wrapped(~self.tensor)

    def __abs__(self):
        return wrapped(self.tensor.abs())

    def __repr__(self):
        return f"array({self.tensor.tolist()}, dtype={self.dtype.name})"

    def __str__(self):
        return str(self.tensor.tolist())


def plain(value):
    return value.tensor if isinstance(value, ndarray) else value


def binary(operation):
    """A method of arrays from a function of two tensors or numbers, and the one with its operands exchanged."""
    return (lambda self, other: wrapped(operation(self.tensor, plain(other))),
            lambda self, other: wrapped(operation(plain(other), self.tensor)))


ndarray.__add__, ndarray.__radd__ = binary(lambda a, b: a + b)
ndarray.__sub__, ndarray.__rsub__ = binary(lambda a, b: a - b)
ndarray.__mul__, ndarray.__rmul__ = binary(lambda a, b: a * b)
ndarray.__truediv__, ndarray.__rtruediv__ = binary(lambda a, b: a / b)
ndarray.__floordiv__, ndarray.__rfloordiv__ = binary(lambda a, b: a // b)
ndarray.__mod__, ndarray.__rmod__ = binary(lambda a, b: a % b)
ndarray.__pow__, ndarray.__rpow__ = binary(lambda a, b: a ** b)
ndarray.__and__, ndarray.__rand__ = binary(lambda a, b: a & b)
ndarray.__or__, ndarray.__ror__ = binary(lambda a, b: a | b)
ndarray.__xor__, ndarray.__rxor__ = binary(lambda a, b: a ^ b)
ndarray.__lshift__, ndarray.__rlshift__ = binary(lambda a, b: a << b)
ndarray.__rshift__, ndarray.__rrshift__ = binary(lambda a, b: a >> b)
ndarray.__matmul__, ndarray.__rmatmul__ = binary(lambda a, b: a @ b)
ndarray.__lt__, ndarray.__gt__ = binary(lambda a, b: a < b)[0], binary(lambda a, b: a > b)[0]
ndarray.__le__, ndarray.__ge__ = binary(lambda a, b: a <= b)[0], binary(lambda a, b: a >= b)[0]
ndarray.__eq__, ndarray.__ne__ = binary(lambda a, b: a == b)[0], binary(lambda a, b: a != b)[0]


def array(value, dtype=None):
    return ndarray(tensor_of(value, dtype).clone())


def asarray(value, dtype=None):
    return ndarray(tensor_of(value, dtype))


def filled(shape, value, kind):
    shape = (shape,) if isinstance(shape, int) else tuple(shape)
    return ndarray(torch.full(shape, value, dtype=torch_type(kind)))


def zeros(shape, dtype=float):
    return filled(shape, 0, dtype)


empty = zeros


def ones(shape, dtype=float):
    return filled(shape, 1, dtype)


def full(shape, fill_value, dtype=None):
    return filled(shape, fill_value, dtype or (float if isinstance(fill_value, float) else int))


def zeros_like(a, dtype=None):
    return ndarray(torch.zeros_like(tensor_of(a, dtype)))


def ones_like(a, dtype=None):
    return ndarray(torch.ones_like(tensor_of(a, dtype)))


def arange(*bounds, dtype=None):
    return ndarray(torch.arange(*bounds, dtype=torch_type(dtype or (float if any_float(bounds) else int))))


def any_float(values):
    return any(isinstance(value, float) for value in values)


def linspace(start, stop, num=50):
    return ndarray(torch.linspace(start, stop, num, dtype=torch.float64))


def eye(n):
    return ndarray(torch.eye(n, dtype=torch.float64))


def reduced(operation):
    """A reduction over one axis, several or all."""

    def reduction(a, axis=None):
        tensor = tensor_of(a)
        axes = list(range(tensor.dim())) if axis is None else axis
        return wrapped(operation(tensor, axes))

    return reduction


def floating(tensor):
    return tensor if tensor.is_floating_point() else tensor.to(torch.float64)


sum = reduced(lambda tensor, axes: tensor.sum(axes))
mean = reduced(lambda tensor, axes: floating(tensor).mean(axes))
std = reduced(lambda tensor, axes: floating(tensor).std(axes, unbiased=False))
var = reduced(lambda tensor, axes: floating(tensor).var(axes, unbiased=False))
max = amax = reduced(lambda tensor, axes: tensor.amax(axes))
min = amin = reduced(lambda tensor, axes: tensor.amin(axes))


def prod(a):
    return wrapped(tensor_of(a).prod())


def quantile(a, q):
    return wrapped(torch.quantile(floating(tensor_of(a)).to(torch.float64), tensor_of(q, float64)))


def percentile(a, q):
    return quantile(a, tensor_of(q, float64) / 100)


def median(a):
    return quantile(a, 0.5)


def elementwise(name):
    return lambda a: wrapped(getattr(torch, name)(floating(tensor_of(a))))


sqrt, exp, log, log2, log10 = (elementwise(name) for name in ("sqrt", "exp", "log", "log2", "log10"))
sin, cos, tanh, floor, ceil = (elementwise(name) for name in ("sin", "cos", "tanh", "floor", "ceil"))
isnan, isinf, isfinite = (elementwise(name) for name in ("isnan", "isinf", "isfinite"))


def abs(a):
    return wrapped(tensor_of(a).abs())


absolute = abs


def round(a, decimals=0):
    return wrapped(torch.round(floating(tensor_of(a)), decimals=decimals))


def clip(a, low, high):
    return wrapped(tensor_of(a).clamp(low, high))


def where(condition, x, y):
    return wrapped(torch.where(tensor_of(condition), tensor_of(x), tensor_of(y)))


def cumsum(a, axis=None):
    return asarray(a).cumsum(axis)


def maximum(a, b):
    return wrapped(torch.maximum(tensor_of(a), tensor_of(b)))


def minimum(a, b):
    return wrapped(torch.minimum(tensor_of(a), tensor_of(b)))


def dot(a, b):
    return wrapped(tensor_of(a) @ tensor_of(b))


matmul = dot


def concatenate(arrays, axis=0):
    return ndarray(torch.cat([tensor_of(each) for each in arrays], axis))


def stack(arrays, axis=0):
    return ndarray(torch.stack([tensor_of(each) for each in arrays], axis))


def allclose(a, b, rtol=1e-5, atol=1e-8, equal_nan=False):
    first, second = tensor_of(a, float64), tensor_of(b, float64)
    return torch.allclose(first, second, rtol=rtol, atol=atol, equal_nan=equal_nan)


def array_equal(a, b):
    return torch.equal(tensor_of(a, float64), tensor_of(b, float64))


def unravel_index(indices, shape):
    if isinstance(indices, ndarray):
        raise NotImplementedError("`unravel_index` takes one index here")
    index = []
    for extent in reversed(shape):
        index.append(indices % extent)
        indices //= extent
    return tuple(reversed(index))


class random:
    """`numpy.random`."""

    @staticmethod
    def seed(seed=None):
        if seed is not None:
            torch.manual_seed(seed)

    @staticmethod
    def rand(*shape):
        return wrapped(torch.rand(shape, dtype=torch.float64))

    @staticmethod
    def randn(*shape):
        return wrapped(torch.randn(shape, dtype=torch.float64))

    @staticmethod
    def randint(low, high=None, size=(), dtype=int):
        low, high = (0, low) if high is None else (low, high)
        size = (size,) if isinstance(size, int) else size
        return wrapped(torch.randint(low, high, size, dtype=torch_type(dtype)))

    @staticmethod
    def uniform(low=0.0, high=1.0, size=()):
        size = (size,) if isinstance(size, int) else size
        return wrapped(torch.rand(size, dtype=torch.float64) * (high - low) + low)

    @staticmethod
    def normal(loc=0.0, scale=1.0, size=()):
        size = (size,) if isinstance(size, int) else size
        return wrapped(torch.randn(size, dtype=torch.float64) * scale + loc)


class testing:
    """`numpy.testing`."""

    @staticmethod
    def assert_allclose(actual, desired, rtol=1e-7, atol=0, equal_nan=True):
        torch.testing.assert_close(tensor_of(actual, float64), tensor_of(desired, float64), rtol=rtol, atol=atol,
                                   equal_nan=equal_nan)

    @staticmethod
    def assert_array_equal(actual, desired):
        torch.testing.assert_close(tensor_of(actual), tensor_of(desired), rtol=0, atol=0)
