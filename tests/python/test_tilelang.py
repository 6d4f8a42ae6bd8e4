"""Tile programs in real Python: what their functions see of it."""

import copy
import dataclasses
import math
import pickle
import types

import pytest
import tilepilot
import tilepilot.tilelang.language as T
import torch
from tilepilot import tilelang

from programs import added, dynamic_scale, matmul, scaled

SCALE = 3.0


def tripled(value):
    return value * SCALE


class Settings:
    offset = 5

    def apply(self, value):
        return value + self.offset


def elementwise(body):
    """A kernel that computes Y[i] = body(X[i]), where body is called in the program."""

    @T.prim_func
    def each(X: T.Tensor((16,), "float32"), Y: T.Tensor((16,), "float32")):
        with T.Kernel(1, threads=32):
            for i in T.Parallel(16):
                Y[i] = body(X[i])

    return tilelang.compile(each, out_idx=-1)


def test_a_lazy_factory_makes_kernels():
    a, b = torch.randn(128, 64), torch.randn(64, 96)
    torch.testing.assert_close(matmul(128, 96, 64)(a, b), a @ b)
    assert matmul(128, 96, 64) is matmul(128, 96, 64)
    assert matmul(128, 96, 64) is not matmul(128, 96, 64, block_M=16)
    assert matmul.mode == "lazy"


def test_arguments_that_are_equal_and_of_other_types_are_other_kernels():
    x = torch.ones(4, 4)
    assert scaled(4, 4, 1) is not scaled(4, 4, 1.0)
    assert scaled(4, 4, True) is not scaled(4, 4, 1)
    assert torch.equal(scaled(4, 4, 1)(x), scaled(4, 4, True)(x))
    assert scaled(4, 4, 2, dtype=T.float32) is scaled(4, 4, 2, dtype=T.float32)


@dataclasses.dataclass
class Choice:
    factor: float
    names: list = dataclasses.field(default_factory=list)


@pytest.mark.parametrize("one, other", [
    (0.0, -0.0), ((2,), (2.0,)), ((1, True), (1, 1)), ([0.0], [-0.0]), ({1}, {1.0}), ({"a": 1}, {"a": 1.0}),
    (Choice(1), Choice(1.0)), (Choice(1, ["a"]), Choice(1, ["b"])), (types.SimpleNamespace(a=0), types.SimpleNamespace(a=0.0)),
], ids=repr)
def test_keys_of_kernels_tell_arguments_apart(one, other):
    @tilelang.jit(out_idx=-1)
    def factory(choice):
        @T.prim_func
        def copy(A: T.Tensor((4,), "float32"), B: T.Tensor((4,), "float32")):
            with T.Kernel(1, threads=32):
                for i in T.Parallel(4):
                    B[i] = A[i]

        return copy

    assert factory(one) is not factory(other) and factory(choice=one) is not factory(choice=other)
    assert factory(copy.deepcopy(one)) is factory(one) and factory(copy.deepcopy(other)) is factory(other)


def test_a_record_that_changed_is_another_argument():
    @tilelang.jit(out_idx=-1)
    def scale(choice):
        factor = choice.factor

        @T.prim_func
        def kernel(A: T.Tensor((4,), "float32"), B: T.Tensor((4,), "float32")):
            with T.Kernel(1, threads=32):
                for i in T.Parallel(4):
                    B[i] = A[i] * factor

        return kernel

    for choice in (Choice(2.0), types.SimpleNamespace(factor=2.0)):
        assert torch.equal(scale(choice)(torch.ones(4)), torch.full((4,), 2.0))
        choice.factor = 3.0
        assert torch.equal(scale(choice)(torch.ones(4)), torch.full((4,), 3.0))


def test_an_eager_function_takes_sizes_from_tensors():
    for shape in ((16, 8), (24, 40)):
        a, b = torch.randn(shape), torch.randn(shape)
        assert torch.equal(added(a, b), a + b)
    assert added.mode == "eager"
    assert "added" in added.get_kernel_source(M=16, N=8)


def test_the_old_form_stacks_jit_on_a_program():
    @tilelang.jit(out_idx=[-1])
    @T.prim_func
    def negate(A: T.Tensor((8, 8), "float32"), B: T.Tensor((8, 8), "float32")):
        with T.Kernel(1, threads=32):
            for i, j in T.Parallel(8, 8):
                B[i, j] = -A[i, j]

    x = torch.randn(8, 8)
    assert torch.equal(negate(x), -x)


def test_extents_may_be_known_only_at_run_time():
    kernel = dynamic_scale()
    for rows in (1, 7, 64):
        x = torch.randn(rows, 8)
        assert torch.equal(kernel(x, 2.0), x * 2)
        assert torch.equal(kernel(A=x, factor=3.0), x * 3)


def test_functions_are_called_with_what_they_see():
    x = torch.randn(16)
    two = 2.0
    cases = {
        "a global": (tripled, x * 3),
        "a closure": (lambda value: value * two, x * 2),
        "a method": (Settings().apply, x + 5),
        "a module": (lambda value: value * math.sqrt(4.0) + math.pi, x * 2 + math.pi),
        "the language": (lambda value: T.max(value, 0.0), x.clamp(min=0)),
    }
    for name, (body, expected) in cases.items():
        torch.testing.assert_close(elementwise(body)(x), expected, msg=name)


def test_values_of_many_kinds_come_from_python():
    names = types.SimpleNamespace(rows=2, table={"k": (1, [2, 4])})

    @T.prim_func
    def mixed(Y: T.Tensor((4,), "int32")):
        with T.Kernel(1, threads=32):
            Y[0] = names.rows
            Y[1] = names.table["k"][1][1]
            Y[2] = len("abc") + sum(range(3))
            Y[3] = torch.iinfo(torch.int8).max

    y = torch.zeros(4, dtype=torch.int32)
    tilelang.compile(mixed)(y)
    assert y.tolist() == [2, 4, 6, 127]


def test_a_name_that_hides_a_builtin_is_the_users():
    max = T.min  # noqa: A001

    x = torch.randn(16)
    torch.testing.assert_close(elementwise(lambda value: max(value, 0.0))(x), x.clamp(max=0))

    @T.prim_func
    def inside(X: T.Tensor((16,), "float32"), Y: T.Tensor((16,), "float32")):
        with T.Kernel(1, threads=32):
            for i in T.Parallel(16):
                Y[i] = max(X[i], 0.0)

    torch.testing.assert_close(tilelang.compile(inside, out_idx=-1)(x), x.clamp(max=0))


def test_macros_are_traced_where_they_are_called():
    @T.macro
    def store(target, i, value):
        if i < 8:
            target[i] = value
        else:
            target[i] = -value

    @T.prim_func
    def split(X: T.Tensor((16,), "float32"), Y: T.Tensor((16,), "float32")):
        with T.Kernel(1, threads=32):
            for i in T.Parallel(16):
                store(Y, i, X[i])

    x = torch.randn(16)
    assert torch.equal(tilelang.compile(split, out_idx=-1)(x), torch.cat([x[:8], -x[8:]]))


def test_names_of_the_language_are_values_of_python():
    assert T.ceildiv(10, 3) == 4
    assert T.float16 == "float16" and T.float16 != "float32" and {T.float16: 1}[T.float16] == 1
    assert T.float16.as_torch() is torch.float16 and str(T.bfloat16) == "bfloat16"
    assert getattr(torch, T.float16) is torch.float16 and isinstance(T.float16, str) and T.float16 is T.float16
    assert pickle.loads(pickle.dumps(T.int8)) is T.int8 and T.float32(1) is not None
    assert hasattr(T, "gemm") and not hasattr(T, "gemmm") and "gemm" in dir(T)
    assert tilelang.next_power_of_2(33) == 64
    names = {}
    exec("from tilepilot.tilelang.language import *", names)
    assert {"gemm", "Tensor", "prim_func", "__exp"} <= set(names)


def test_annotations_may_be_text(python):
    run = python("""
from __future__ import annotations
import torch
import tilepilot.tilelang.language as T
from tilepilot import tilelang

def make(n):
    @T.prim_func
    def double(X: T.Tensor((n,), "float32"), Y: T.Tensor((n,), "float32")):
        with T.Kernel(1, threads=32):
            for i in T.Parallel(n):
                Y[i] = X[i] * 2
    return tilelang.compile(double, out_idx=-1)

print(make(8)(torch.ones(8)).tolist() == [2.0] * 8)
""")
    assert run.stdout == "True\n", run.stderr


def test_objects_of_python_are_equal_arguments_again():
    traces = []
    note = traces.append

    @tilelang.jit
    def converted(A, dtype):
        M = T.const("M")
        A: T.Tensor[[M], T.float32]
        note(dtype)
        B = T.empty((M,), dtype)
        with T.Kernel(1, threads=32):
            for i in T.Parallel(M):
                B[i] = T.cast(A[i], dtype)
        return B

    x = torch.randn(16)
    for _ in range(3):
        assert converted(x, torch.float16).dtype == torch.float16
        assert converted(x, torch.float64).dtype == torch.float64
    assert traces == [torch.float16, torch.float64]


number, numbers, choice, plain = 2.0, {0: [2.0]}, Choice(2.0), type("Plain", (), {})()
numbers["itself"] = numbers


@tilelang.jit
def scaled_by_what_is_outside(A, given):
    M = T.const("M")
    A: T.Tensor[[M], T.float32]
    B = T.empty((M,), T.float32)
    with T.Kernel(1, threads=32):
        for i in T.Parallel(M):
            B[i] = A[i] * number * numbers[0][0] * choice.factor * given.factor
    return B


@tilelang.jit(out_idx=-1)
def made_of_what_is_outside(M, given):
    factor = number * numbers[0][0] * choice.factor

    @T.prim_func
    def kernel(A: T.Tensor((M,), "float32"), B: T.Tensor((M,), "float32")):
        with T.Kernel(1, threads=32):
            for i in T.Parallel(M):
                B[i] = A[i] * factor * given.factor

    return kernel


@pytest.mark.parametrize("call", [
    lambda x: scaled_by_what_is_outside(x, plain), lambda x: made_of_what_is_outside(8, plain)(x)], ids=["eager", "lazy"])
def test_what_a_program_read_outside_may_change(call, monkeypatch):
    plain.factor = 2.0
    x, product = torch.ones(8), 16.0
    assert torch.equal(call(x), x * product)
    for change in (lambda: monkeypatch.setitem(globals(), "number", 3.0), lambda: monkeypatch.setitem(numbers, 0, [3.0]),
                   lambda: monkeypatch.setattr(choice, "factor", 3.0), lambda: setattr(plain, "factor", 3.0)):
        change()
        product *= 1.5
        assert torch.equal(call(x), x * product)
    monkeypatch.undo()
    plain.factor = 2.0
    assert torch.equal(call(x), x * 16.0)  # the kernel of before


def test_what_is_made_anew_for_each_look_makes_no_other_kernel():
    class Sizes:
        @property
        def inner(self):
            return type("Inner", (), {"factor": 2.0})()

    sizes = Sizes()

    @tilelang.jit(out_idx=-1)
    def factory(M):
        @T.prim_func
        def kernel(A: T.Tensor((M,), "float32"), B: T.Tensor((M,), "float32")):
            with T.Kernel(1, threads=32):
                for i in T.Parallel(M):
                    B[i] = A[i] * sizes.inner.factor

        return kernel

    assert torch.equal(factory(8)(torch.ones(8)), torch.full((8,), 2.0))
    assert factory(8) is factory(8)


def test_helpers_may_use_all_of_python():
    def first_line():
        with open(__file__) as file:
            return len(file.readline())

    @T.prim_func
    def reads(Y: T.Tensor((2,), "int32")):
        with T.Kernel(1, threads=32):
            Y[0] = first_line()
            Y[1] = sorted([3, 1, 2], key=lambda value: -value)[0]

    y = torch.zeros(2, dtype=torch.int32)
    tilelang.compile(reads)(y)
    assert y.tolist() == [len(open(__file__).readline()), 3]


def test_endless_recursion_is_an_exception():
    def deeper(value):
        return deeper(value)

    endless = lambda value: endless(value)  # noqa: E731
    for body, match in ((deeper, "calls nest more than"), (endless, "maximum recursion depth exceeded")):
        with pytest.raises(tilepilot.CompileError, match=match):
            elementwise(body)


def test_methods_are_factories_too():
    class Layer:
        offset = 4

        @tilelang.jit(out_idx=-1)
        def kernel(self, n):
            @T.prim_func
            def shift(A: T.Tensor((n,), "float32"), B: T.Tensor((n,), "float32")):
                with T.Kernel(1, threads=32):
                    for i in T.Parallel(n):
                        B[i] = A[i] + self.offset

            return shift

    assert torch.equal(Layer().kernel(4)(torch.zeros(4)), torch.full((4,), 4.0))


def test_errors_have_the_line_and_carets():
    with pytest.raises(tilepilot.CompileError) as caught:
        @T.prim_func
        def misspelt(X: T.Tensor((16,), "float32")):
            with T.Kernel(1, threads=32):
                T.alloc_fragmnt((16,), "float32")
    text = str(caught.value)
    assert "test_tilelang.py" in text and "^~~~" in text and "did you mean `T.alloc_fragment`" in text
    assert caught.value.kind == "unknown_tile_name"
    line = caught.value.details["line"]
    assert "alloc_fragmnt" in open(__file__).read().splitlines()[line - 1]


def test_an_exception_of_python_is_the_cause():
    def refuses(value):
        raise LookupError("no such thing")

    with pytest.raises(tilepilot.CompileError, match="no such thing") as caught:
        elementwise(lambda value: refuses(value))
    assert isinstance(caught.value.__cause__, LookupError)


def test_a_program_without_a_source_is_told():
    names = {"T": T}
    exec("def nowhere(X: T.Tensor((16,), 'float32')):\n    pass\n", names)
    with pytest.raises(tilepilot.CompileError, match="the source of `nowhere` cannot be found"):
        T.prim_func(names["nowhere"])


def test_a_target_that_is_not_here_is_told(monkeypatch):
    monkeypatch.delenv("TILEPILOT_TARGET", raising=False)
    with pytest.raises(tilepilot.CompileError, match="the target `hip` is not available"):
        tilelang.jit(out_idx=-1, target="hip")(lambda: None)


def test_a_factory_that_returns_something_else_is_told():
    @tilelang.jit
    def forgets(M):
        pass

    with pytest.raises(tilepilot.CompileError, match="the factory `forgets` returns a `NoneType`"):
        forgets(4)


def test_kernels_are_profiled():
    kernel = matmul(64, 64, 64)
    profiler = kernel.get_profiler()
    assert 0 < profiler.do_bench(warmup=1, rep=2) < 1000
    assert len(profiler.do_bench(warmup=1, rep=2, quantiles=[0.1, 0.9])) == 2
    profiler.assert_allclose(lambda a, b: a @ b)
    with pytest.raises(AssertionError, match="Too many mismatched elements"):
        profiler.assert_allclose(lambda a, b: a @ b + 1)
    with pytest.raises(ValueError, match="the extent `m` is dynamic"):
        dynamic_scale().get_profiler().do_bench()
