# Real Python stops at the first import: run only by the evaluator.
import triton
import triton.language as tl
import flash_attn.ops.triton as deep
import transformers, tvm
from fla.ops import attention as fla_attention
from triton.testing import *

import functools
import inspect  # refused to a candidate, nothing here for a script


@triton.autotune(configs=[triton.Config({"BLOCK": block}) for block in (32, 64)], key=["n"])
@triton.jit
def kernel(x, n, BLOCK: tl.constexpr = tl.constexpr(32)):
    return tl.load(x) + n


@functools.lru_cache
@deep.wrapped
class Wrapped:
    sizes = tl.arange(0, 4)


class Model(transformers.PreTrainedModel, object):
    def forward(self, x: "tvm.Tensor") -> tvm.runtime.NDArray | None:
        return tl.dot(x, x)


def optional(x: triton.Tensor[int, "n"] = None, backend=fla_attention) -> triton.Tensor | None:
    return backend(x) if x is not None else "skipped"


def used(body):
    try:
        return body()
    except ImportError as error:
        return f"{type(error).__name__} of {error.name}: {error}"


print(optional(), callable(kernel), kernel, triton.language.float16)
for body in [
    lambda: kernel(1, 2),
    lambda: kernel[(4,)](1, 2),
    lambda: Wrapped(),
    lambda: Model().forward(1),
    lambda: optional(1),
    lambda: triton.cdiv(1, 2),
    lambda: triton.__version__ >= "3",
    lambda: bool(triton.available),
    lambda: [x for x in tl.names],
    lambda: len(tl.names),
    lambda: tl.pi * 2,
    lambda: -tl.pi,
    lambda: 1 in tl.names,
    lambda: isinstance(1, triton.Tensor),
    lambda: int(tl.pi),
    lambda: setattr(tl.config, "x", 1),
    lambda: inspect.signature(used),
    lambda: assert_close(1, 1),  # of triton.testing, perhaps
]:
    print(used(body))
try:
    import flash_attn

    print("here")
except ImportError:
    print("not here")
try:
    import cupy
finally:
    print("stands in")
print(cupy == cupy, cupy.array == None)
