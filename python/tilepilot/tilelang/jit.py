"""`tilelang.jit` and `tilelang.compile`: tile programs as kernels that take tensors."""

import dataclasses
import functools
import sys
import types

from tilepilot import _core
from tilepilot.errors import CompileError, warn
from tilepilot.targets import target_named


class JITKernel:
    """A compiled tile program. Outputs, which `out_idx` names, are allocated and returned."""

    def __init__(self, native, origin=None):
        self._native = native
        self._origin = origin  # the function and the arguments that made it
        self._operator = self._is_compiling = None
        if "torch" in sys.modules:
            self._register()

    def _register(self):
        import torch
        from tilepilot.operators import operator_for
        self._operator = operator_for(self._native)
        self._is_compiling = torch.compiler.is_compiling
        _PLAIN.add(torch.dtype)

    def __call__(self, *args, **kwargs):
        if self._is_compiling is None:
            self._register()
        if self._is_compiling():
            return self._operator(*args, **kwargs)
        try:
            return self._native(*args, **kwargs)
        except _core.NeedsDispatch:
            return self._operator(*args, **kwargs)

    @property
    def operator(self):
        """The operator of torch.library that it is."""
        if self._operator is None:
            self._register()
        return self._operator.overload

    @property
    def kernel_source(self):
        return self._native.source()

    def get_kernel_source(self):
        """The code that was generated."""
        return self._native.source()

    @property
    def prim_func(self):
        """The tile program."""
        return self._native.value.prim_func

    @property
    def torch_function(self):
        return self

    @property
    def out_idx(self):
        return self._native.outputs

    @property
    def target(self):
        """The target that it was made for; "auto": the device of its tensors."""
        return self._native.target

    @property
    def device(self):
        """Where it runs when no tensor says it, "cpu" or "cuda"."""
        return self._native.device

    @property
    def params(self):
        from tilepilot.tilelang.engine.param import KernelParam
        return [KernelParam(row["dtype"], row["shape"] or []) for row in self._native.parameters]

    def get_profiler(self, tensor_supply_type=None):
        """Runs and times it on inputs that it makes, where it runs."""
        from tilepilot.scripts.device import placed
        from tilepilot.tilelang.profiler import TensorSupplyType, profiler_of
        profiler = profiler_of(self, tensor_supply_type or TensorSupplyType.Auto)
        supply = profiler.supply

        def supply_here(param):
            with placed(self.device):
                return supply(param)

        profiler.supply = supply_here
        return profiler

    def __repr__(self):
        return f"<tile kernel {self._native.name}>"

    def __copy__(self):
        return self

    def __deepcopy__(self, memo):
        return self

    def __reduce__(self):
        if self._origin is None:
            raise TypeError(f"{self!r} cannot be pickled: it was not made by a function with @tilelang.jit")
        return _made_by, self._origin


def _made_by(function, args, kwargs):
    return function(*args, **kwargs)


_PLAIN = {int, float, bool, str, bytes, type(None)}  # types of arguments that are their own keys, but for 0.0


def _frozen(value):
    """Something hashable that stands for an argument as it is now: the content of containers and of records (dataclasses,
    namespaces), other objects themselves."""
    if isinstance(value, _core.Value):
        return "value", id(value)
    if isinstance(value, float):
        return type(value), repr(value)  # 0.0 and -0.0 are equal
    if isinstance(value, (list, tuple)):
        return type(value), tuple(map(_frozen, value))
    if isinstance(value, (set, frozenset)):
        return type(value), frozenset(map(_frozen, value))
    if isinstance(value, dict):
        return dict, tuple(sorted((name, _frozen(item)) for name, item in value.items()))
    if isinstance(value, types.SimpleNamespace) or dataclasses.is_dataclass(value) and not isinstance(value, type):
        return type(value), frozenset((name, _frozen(item)) for name, item in _fields_of(value))
    try:
        hash(value)
    except TypeError:
        return "object", id(value)
    return type(value), value


def _fields_of(record):
    named = [field.name for field in dataclasses.fields(record)] if dataclasses.is_dataclass(record) else []
    kept = {name: getattr(record, name) for name in named if hasattr(record, name)}
    return {**kept, **getattr(record, "__dict__", {})}.items()


def _are_same(one, other):
    """Whether two kernels are one program."""
    return one is other or ((one.out_idx, one.target, one._native.script())
                            == (other.out_idx, other.target, other._native.script()))


class _IsEager(Exception):
    """A function that was taken for a factory is a tile program itself."""


class JITFunction:
    """A function with `@tilelang.jit`: a factory of programs (lazy), or a program itself (eager)."""

    def __init__(self, function, out_idx=None, target="auto", fast_math=False):
        functools.update_wrapper(self, function)
        self._function = function
        self._out_idx = out_idx
        self._target = target
        self._fast_math = fast_math
        self._kernels = {}  # by arguments: kernels, the latest first, each with what its program read besides
        self._kept = []  # arguments whose identity is part of a key
        self._is_compiling = None
        try:
            self._native = _core.JitFunction(function, target, fast_math)
            self._eager = self._native.is_eager
        except CompileError:
            self._native, self._eager = None, False  # a factory may use all of Python
        if self._eager:
            self._check_no_out_idx()

        def constant(*args, **kwargs):
            return self._kernel(*args, **kwargs)

        # To torch.compile the kernel of a factory is a constant.
        constant._dynamo_marked_constant = True
        self._constant = constant

    @property
    def mode(self):
        return "eager" if self._eager else "lazy"

    @property
    def func(self):
        return self._function

    def _check_no_out_idx(self):
        if self._out_idx is not None:
            raise CompileError(f"`out_idx` does not apply to `{self.__name__}`, which is a tile program itself: "
                               "make outputs with `T.empty` and return them")

    def __call__(self, *args, **kwargs):
        if self._is_compiling is None and "torch" in sys.modules:
            self._is_compiling = sys.modules["torch"].compiler.is_compiling
        if self._is_compiling is not None and self._is_compiling() and not self._eager:
            return self._constant(*args, **kwargs)
        if self._eager:
            return self._call_eager(args, kwargs)
        try:
            return self._kernel(*args, **kwargs)
        except _IsEager:
            return self._call_eager(args, kwargs)

    def _call_eager(self, args, kwargs):
        try:
            result = self._native(*args, **kwargs)
        except _core.NeedsDispatch:
            result = self._native.arrange(*args, **kwargs)
            if isinstance(result, tuple):
                kernel, inputs = result
                return JITKernel(kernel)._operator(*inputs)
        return JITKernel(result) if isinstance(result, _core.Kernel) else result

    def _kernel(self, *args, **kwargs):
        """The kernel that the factory makes of these arguments."""
        key = None
        if not kwargs and _PLAIN.issuperset(kinds := tuple(map(type, args))) and 0 not in args:
            key = args, kinds
            for kernel, reads in self._kernels.get(key, ()):
                if reads.are_as_noted():
                    return kernel
        frozen = tuple(map(_frozen, args)), tuple(sorted((name, _frozen(value)) for name, value in kwargs.items()))
        versions = self._kernels.setdefault(frozen, [])
        if key is not None:
            self._kernels.setdefault(key, versions)
        for kernel, reads in versions:
            if reads.are_as_noted():
                return kernel
        if not versions:
            self._kept.append((args, kwargs))
        kernel = self._made(args, kwargs, reads := _core.Reads())
        for position, (known, _) in enumerate(versions):
            if _are_same(known, kernel):  # made of other objects, which were made anew to be read
                kernel = known
                del versions[position]
                break
        versions.insert(0, (kernel, reads))
        return kernel

    def _made(self, args, kwargs, reads):
        _core.missed_program()
        reads.begin()
        try:
            program = self._function(*args, **kwargs)
        except CompileError:
            if self._native is None or not _core.missed_program():
                raise
            self._check_no_out_idx()
            self._eager = True
            raise _IsEager from None
        finally:
            reads.end()
        if isinstance(self._function, types.FunctionType):
            reads.note_outer_names(self._function)
        if isinstance(program, JITKernel):
            return program
        if not isinstance(program, _core.Value) or program.type_name != "PrimFunc":
            raise CompileError(f"the factory `{self.__name__}` returns a `{type(program).__name__}`: "
                               "it must return the `T.prim_func` that it defines")
        return JITKernel(_core.make_kernel(program, self._out_idx, self._target, self._fast_math), (self, args, kwargs))

    def compile(self, *args, **kwargs):
        """The kernel for these arguments, without a call. Sizes of an eager function are given by name."""
        kernel = self.stage(*args, **kwargs)
        kernel._native.compile()
        return kernel

    def stage(self, *args, **kwargs):
        """The kernel, which is compiled when it is called."""
        if not self._eager:
            try:
                return self._kernel(*args, **kwargs)
            except _IsEager:
                pass
        return JITKernel(self._native.compile(*args, **kwargs))

    def get_kernel_source(self, *args, **kwargs):
        return self.compile(*args, **kwargs).get_kernel_source()

    def get_tir(self, *args, **kwargs):
        """The tile program for these arguments."""
        return self.stage(*args, **kwargs).prim_func

    def par_compile(self, configs, num_workers=None, ignore_error=False):
        """A kernel for each configuration, which is a tuple of arguments or a dict of them by name."""
        kernels = [self.stage(**config) if isinstance(config, dict) else self.stage(*config)
                   for config in configs]
        return _compiled_together(kernels, ignore_error)

    def __get__(self, instance, owner=None):
        return self if instance is None else functools.partial(self, instance)

    def __reduce__(self):
        return self.__qualname__


def _checked_target(target, options):
    """The target that a decorator or `compile` asks for."""
    known = {"target_host", "execution_backend", "verbose", "pass_configs", "debug_root_path", "compile_flags"}
    if unknown := sorted(set(options) - known):
        raise TypeError(f"unexpected keyword argument '{unknown[0]}'")
    return target_named(target)


def _asks_fast_math(options):
    """Whether approximate arithmetic is asked for; other requests are announced."""
    fast = False
    for key, value in (options.get("pass_configs") or {}).items():
        if key in ("TL_ENABLE_FAST_MATH", "tl.enable_fast_math"):
            fast = fast or bool(value)
        else:
            warn(f"`{key}` in `pass_configs` has no effect on this target")
    flags = options.get("compile_flags") or []
    for flag in [flags] if isinstance(flags, str) else flags:
        if flag in ("--use_fast_math", "-use_fast_math"):
            fast = True
        else:
            warn(f"the flag `{flag}` has no effect on this target")
    return fast


def jit(func=None, *, out_idx=None, target="auto", **options):
    """Decorates a factory of tile programs, a tile program, or a `T.prim_func`."""
    if func is not None and not callable(func):  # the old form: @tilelang.jit([-1])
        func, out_idx = None, func
    target, fast_math = _checked_target(target, options), _asks_fast_math(options)

    def decorate(function):
        if isinstance(function, _core.Value):
            return JITKernel(_core.make_kernel(function, out_idx, target, fast_math))
        return JITFunction(function, out_idx, target, fast_math)

    return decorate if func is None else decorate(func)


def compile(func=None, out_idx=None, execution_backend="auto", target="auto", **options):
    """The kernel of a `T.prim_func`."""
    target = _checked_target(target, options)
    if not isinstance(func, _core.Value):
        raise CompileError(f"`tilelang.compile` needs a `T.prim_func`, not a `{type(func).__name__}`")
    return JITKernel(_core.make_kernel(func, out_idx, target, _asks_fast_math(options)))


def _compiled_together(kernels, ignore_error):
    """The kernels, compiled side by side; with `ignore_error` None in place of those that cannot be."""
    from tilepilot.scripts.tuning import compile_all
    reasons = compile_all(kernels)
    for kernel, reason in zip(kernels, reasons):
        if reason is not None and not ignore_error:
            kernel._native.compile()  # raises what is behind the reason
    return [kernel if reason is None else None for kernel, reason in zip(kernels, reasons)]


def par_compile(funcs, out_idx=None, execution_backend="auto", target="auto", num_workers=None, ignore_error=False,
                **options):
    """The kernels of several `T.prim_func`s."""
    return _compiled_together([compile(func, out_idx, execution_backend, target, **options) for func in funcs],
                              ignore_error)


def lower(func_or_mod, target="auto", **options):
    """What a `T.prim_func` is compiled to; `kernel_source` is the code."""
    kernel = compile(func_or_mod, target=target)
    kernel._native.compile()
    return kernel
