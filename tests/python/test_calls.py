"""Calls of kernels: tensors that they take, and those that they refuse."""

import pytest
import tilepilot
import tilepilot.tilelang.language as T
import torch
from tilepilot import tilelang
from torch.utils.flop_counter import FlopCounterMode

from programs import added, dynamic_scale, matmul, scaled


@pytest.fixture
def kernel():
    return scaled(16, 16, 2)


def refused(match):
    return pytest.raises(tilepilot.ArgumentError, match=match)


def test_other_tensors_are_refused_by_name(kernel):
    with refused(r"`A` must have shape \(16, 16\), got \(8, 16\)"):
        kernel(torch.ones(8, 16))
    with refused("`A` must have dtype `float32`, got `float64`"):
        kernel(torch.ones(16, 16, dtype=torch.float64))
    with refused("`A` must be contiguous"):
        kernel(torch.ones(16, 32)[:, ::2])
    with refused("takes 1 argument, got 2"):
        kernel(torch.ones(16, 16), torch.ones(16, 16))
    with refused("must be a tensor, not `int`"):
        kernel(3)
    with refused("lacks its argument `A`"):
        kernel(B=torch.ones(16, 16))
    with refused("no tensors of `torch.complex64`"):
        kernel(torch.ones(16, 16, dtype=torch.complex64))


def test_tensors_without_plain_memory_are_refused(kernel):
    x = torch.ones(16, 16)
    with refused("no access to the memory"):
        kernel(torch.ones(16, 16, device="meta"))
    with refused("no access to the memory"):
        kernel(x.to_sparse())
    with refused("the negative of what lies in its memory"):
        kernel(torch.ones(16, 16, dtype=torch.complex64).conj().imag)


def test_recorded_graphs_have_the_operator(kernel):
    from torch.fx.experimental.proxy_tensor import make_fx
    for mode in ("real", "fake"):
        graph = make_fx(lambda value: kernel(value) + 1, tracing_mode=mode)(torch.ones(16, 16))
        assert "torch.ops.tilepilot.scale" in graph.code


def test_what_looks_on_sees_the_operator(kernel):
    x, others = torch.randn(16, 16), torch.randn(3, 16, 16)
    with pytest.warns(DeprecationWarning):
        traced = torch.jit.trace(lambda value: added(kernel(value), value), (x,))
    torch.testing.assert_close(traced(others[0]), others[0] * 3)
    torch.testing.assert_close(torch.vmap(kernel)(others), others * 2)
    with FlopCounterMode(display=False):
        torch.testing.assert_close(added(x, x), x * 2)


def test_gradients_in_forward_mode_are_refused(kernel):
    x = torch.randn(16, 16)
    with torch.autograd.forward_ad.dual_level():
        with refused("gradient of forward mode"):
            kernel(torch.autograd.forward_ad.make_dual(x, x))
        assert torch.equal(kernel(x), x * 2)
    with refused("requires its gradient"):
        torch.func.grad(lambda value: kernel(value).sum())(x)


def test_autograd_learns_what_a_kernel_writes_to():
    @T.prim_func
    def double(A: T.Tensor((8,), "float32"), B: T.Tensor((8,), "float32")):
        with T.Kernel(1, threads=32):
            for i in T.Parallel(8):
                B[i] = A[i] * 2

    kernel = tilelang.compile(double)
    for call in (kernel, kernel.operator):
        read, written = torch.ones(8), torch.ones(8)
        product = torch.ones(8, requires_grad=True) * written  # keeps what it multiplied with
        call(read, written)
        assert (read._version, written._version) == (0, 1)
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            product.sum().backward()
    with torch.inference_mode():
        written = torch.ones(8)
        kernel(read, written)
    assert torch.equal(written, read * 2)


def test_gradients_are_never_silently_lost(kernel):
    x = torch.ones(16, 16, requires_grad=True)
    with refused("requires its gradient"):
        kernel(x)
    with torch.no_grad():
        assert torch.equal(kernel(x), x * 2)
    assert torch.equal(kernel(x.detach()), x.detach() * 2)

    class Doubled(torch.autograd.Function):
        @staticmethod
        def forward(context, value):
            return kernel(value)

        @staticmethod
        def backward(context, gradient):
            return kernel(gradient.contiguous())

    Doubled.apply(x).sum().backward()
    assert torch.equal(x.grad, torch.full((16, 16), 2.0))


def test_every_way_to_the_same_memory(kernel):
    x = torch.randn(32, 16)
    assert torch.equal(kernel(x[16:]), x[16:] * 2)  # an offset
    assert torch.equal(kernel(torch.nn.Parameter(x[:16], requires_grad=False)), x[:16] * 2)
    y = torch.randn(16, 16)
    assert torch.equal(kernel(A=y), y * 2)
    empty = dynamic_scale()(torch.empty(0, 8), 2.0)
    assert empty.shape == (0, 8)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float64", "int8", "int32", "int64", "uint8"])
def test_dtypes(dtype):
    x = torch.arange(64).reshape(8, 8).to(getattr(torch, dtype))
    assert torch.equal(scaled(8, 8, 2, dtype=dtype)(x), x * 2)


def test_float8_and_bool():
    x = torch.randn(8, 8).to(torch.float8_e4m3fn)

    @T.prim_func
    def widen(A: T.Tensor((8, 8), "float8_e4m3fn"), M: T.Tensor((8, 8), "bool"), B: T.Tensor((8, 8), "float32")):
        with T.Kernel(1, threads=32):
            for i, j in T.Parallel(8, 8):
                B[i, j] = T.if_then_else(M[i, j], T.cast(A[i, j], "float32"), 0.0)

    mask = torch.rand(8, 8) > 0.5
    assert torch.equal(tilelang.compile(widen, out_idx=-1)(x, mask), torch.where(mask, x.float(), 0.0))


def test_tensors_of_a_torch_without_the_exchange_of_dlpack(python):
    run = python("""
import torch
del torch.Tensor.__dlpack_c_exchange_api__
import tilepilot.tilelang.language as T
from tilepilot import tilelang

@T.prim_func
def double(A: T.Tensor((8, 8), "bfloat16"), B: T.Tensor((8, 8), "bfloat16")):
    with T.Kernel(1, threads=32):
        for i, j in T.Parallel(8, 8):
            B[i, j] = A[i, j] * 2

x = torch.randn(16, 8).bfloat16()[8:]
kernel = tilelang.compile(double, out_idx=-1)
print(torch.equal(kernel(x), x * 2))
try:
    kernel(x.float())
except TypeError as error:
    print("must have dtype" in str(error))
try:
    kernel(x.to_sparse())
except Exception as error:
    print("refused")
""")
    assert run.stdout == "True\nTrue\nrefused\n", run.stderr


def test_inputs_may_be_written_in_place():
    @T.prim_func
    def increment(A: T.Tensor((16,), "float32")):
        with T.Kernel(1, threads=32):
            for i in T.Parallel(16):
                A[i] = A[i] + 1

    x = torch.zeros(16)
    assert tilelang.compile(increment)(x) is None
    assert torch.equal(x, torch.ones(16))


def test_several_outputs_are_a_list():
    @T.prim_func
    def both(A: T.Tensor((16,), "float32"), B: T.Tensor((16,), "float32"), C: T.Tensor((16,), "float16")):
        with T.Kernel(1, threads=32):
            for i in T.Parallel(16):
                B[i] = A[i] + 1
                C[i] = A[i] + 2

    x = torch.randn(16)
    b, c = tilelang.compile(both, out_idx=[1, 2])(x)
    assert torch.equal(b, x + 1) and c.dtype == torch.float16


def test_a_check_that_fails_while_a_kernel_runs_is_an_exception():
    @T.prim_func
    def checked(A: T.Tensor((16,), "int32")):
        with T.Kernel(1, threads=32):
            for i in T.serial(16):
                T.device_assert(A[i] < 5, "too large")

    tilelang.compile(checked)(torch.zeros(16, dtype=torch.int32))
    with pytest.raises(tilepilot.TilePilotError, match="too large"):
        tilelang.compile(checked)(torch.full((16,), 7, dtype=torch.int32))


def test_torch_sees_through_kernels():
    a, b = torch.randn(64, 32), torch.randn(32, 64)
    kernel = matmul(64, 64, 32)

    def model(a, b):
        return torch.relu(kernel(a, b)) + 1

    with torch.no_grad():
        torch.testing.assert_close(torch.compile(model, fullgraph=True)(a, b), model(a, b))
    rows = dynamic_scale()
    compiled = torch.compile(lambda x: rows(x, 3.0) + 1, fullgraph=True, dynamic=True)
    for count in (5, 9):
        x = torch.randn(count, 8)
        torch.testing.assert_close(compiled(x), x * 3 + 1)


def test_operators_pass_torchs_own_check():
    torch.library.opcheck(matmul(64, 64, 32).operator, (torch.randn(64, 32), torch.randn(32, 64)))


def test_the_fake_kernel_refuses_what_the_kernel_refuses(kernel):
    from torch._subclasses.fake_tensor import FakeTensorMode
    with FakeTensorMode():
        assert kernel(torch.empty(16, 16)).shape == (16, 16)
        with pytest.raises(Exception, match="must have shape"):
            kernel(torch.empty(16, 8))


def test_an_operator_whose_gradient_is_wanted_is_refused(kernel):
    x = torch.ones(16, 16, requires_grad=True)
    with refused("requires its gradient"):
        kernel.operator(x)
