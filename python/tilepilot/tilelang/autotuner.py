"""`tilelang.autotuner`: kernels whose missing arguments are found by trying. Configurations that cannot be compiled or
run are passed over."""

import dataclasses
import functools
import inspect

from tilepilot.errors import TilePilotError, warn
from tilepilot.tilelang.jit import JITFunction, JITKernel, _frozen, compile
from tilepilot.tilelang.profiler import TensorSupplyType, do_bench

__all__ = ["AutoTuner", "AutotuneResult", "autotune", "set_autotune_inputs"]

_given_inputs = []


class set_autotune_inputs:
    """Tuning inside the block runs on these tensors."""

    def __init__(self, *tensors):
        only = len(tensors) == 1 and isinstance(tensors[0], (list, tuple))
        self._tensors = list(tensors[0]) if only else list(tensors)

    def __enter__(self):
        _given_inputs.append(self._tensors)

    def __exit__(self, *_):
        _given_inputs.pop()


@dataclasses.dataclass
class AutotuneResult:
    kernel: JITKernel
    config: dict
    latency: float | None = None
    ref_latency: float | None = None

    def __call__(self, *args, **kwargs):
        return self.kernel(*args, **kwargs)


# What upstream takes, and what stays the same here whatever is given.
_HARMLESS = {"target", "target_host", "execution_backend", "verbose", "cache_input_tensors", "skip_check"}


def _announce(options):
    """Of the options that ask for something, those that change nothing here."""
    for name in sorted(set(options) - _HARMLESS):
        warn(f"`{name}` has no effect on tuning here")


def _checked(configs, names):
    configs = list(configs)
    if not configs:
        raise ValueError("there are no configurations to tune")
    for config in configs:
        if unknown := sorted(set(config) - set(names)):
            raise ValueError(f"the configurations have `{unknown[0]}`, which the function has not")
    return configs


def _fastest(configs, made, warmup, rep, supply):
    best, refusal = None, None
    for config in configs:
        try:
            kernel = made(config)
            profiler = kernel.get_profiler(supply)
            inputs = _given_inputs[-1] if _given_inputs else profiler._inputs()
            latency = do_bench(lambda: kernel(*inputs), warmup, rep)
        except TilePilotError as error:
            refusal = error
            continue
        if best is None or latency < best.latency:
            best = AutotuneResult(kernel, config, latency)
    if best is None:
        raise TilePilotError(f"none of {len(configs)} configurations can be compiled and run: {refusal}") from refusal
    return best


class _Tuned:
    def __init__(self, function, configs, warmup, rep, supply):
        functools.update_wrapper(self, function.func)
        self._function, self._configs = function, configs
        self._limits = warmup, rep, supply
        self._results = {}

    def _result(self, args, kwargs):
        key = _frozen(args), _frozen(kwargs)
        if key not in self._results:
            self._results[key] = self._search(args, kwargs)
        return self._results[key]

    def _search(self, args, kwargs):
        names = list(inspect.signature(self._function.func).parameters)
        configs = self._configs(*args, **kwargs) if callable(self._configs) else self._configs
        configs = _checked(configs, names)
        given = {*names[:len(args)], *kwargs}
        if given.intersection(configs[0]):  # the call has chosen
            return AutotuneResult(self._function.compile(*args, **kwargs), {})
        return _fastest(configs, lambda config: self._function.compile(*args, **kwargs, **config), *self._limits)

    def compile(self, *args, **kwargs):
        return self._result(args, kwargs).kernel

    def __call__(self, *args, **kwargs):
        result = self._result(args, kwargs)
        if self._function.mode == "lazy":
            return result.kernel
        return self._function(*args, **kwargs, **result.config)


def autotune(func=None, *, configs, warmup=25, rep=100, supply_type=TensorSupplyType.Auto, **options):
    """Decorates a function with @tilelang.jit. A warning names what upstream takes beside these and changes nothing."""
    _announce(options)
    if func is not None:
        raise ValueError("`tilelang.autotune` needs arguments: write `@tilelang.autotune(configs=...)`")

    def decorate(function):
        if not isinstance(function, JITFunction):
            raise TypeError("`@tilelang.autotune` stands above `@tilelang.jit`")
        return _Tuned(function, configs, warmup, rep, supply_type)

    return decorate


class AutoTuner:
    """The same for a function that returns a program, in steps."""

    def __init__(self, kernel, configs):
        self._function, self._configs = kernel, configs
        self._out_idx, self._supply = None, TensorSupplyType.Auto

    @classmethod
    def from_kernel(cls, kernel, configs):
        return cls(kernel, configs)

    def set_compile_args(self, out_idx=None, **options):
        _announce(options)
        self._out_idx = out_idx
        return self

    def set_profile_args(self, supply_type=TensorSupplyType.Auto, **options):
        _announce(options)
        self._supply = supply_type
        return self

    def run(self, warmup=25, rep=100, **options):
        _announce(options)
        configs = _checked(self._configs() if callable(self._configs) else self._configs,
                           inspect.signature(getattr(self._function, "func", self._function)).parameters)
        return _fastest(configs, self._made, warmup, rep, self._supply)

    def _made(self, config):
        program = self._function(**config)
        return program if isinstance(program, JITKernel) else compile(program, self._out_idx)
