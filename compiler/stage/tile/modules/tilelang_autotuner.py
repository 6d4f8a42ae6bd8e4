# `tilelang.autotuner` for scripts: tries configurations of a program one after another and keeps the fastest. As many
# as the run allows, spread over the list: each is compiled, and here that takes seconds.
import sys

import _tilepilot_limits as limits
import tilelang
from tilelang.utils.tensor import TensorSupplyType

# A key of a configuration that is no parameter: options of the compiler, which has none here.
PASS_CONFIGS = "pass_configs"
# Inputs given with set_autotune_inputs, innermost last.
captured_inputs = []


class set_autotune_inputs:
    """Tuning inside the block runs on these tensors."""

    def __init__(self, *tensors):
        one_list = len(tensors) == 1 and isinstance(tensors[0], (list, tuple))
        self.tensors = list(tensors[0]) if one_list else list(tensors)

    def __enter__(self):
        captured_inputs.append(self.tensors)

    def __exit__(self, kind, value, traceback):
        captured_inputs.pop()
        return False


class ProfileOptions:
    """How the candidates are run, checked and timed."""

    def __init__(self, warmup=25, rep=100, timeout=100, supply_type=TensorSupplyType.Auto, ref_prog=None,
                 supply_prog=None, rtol=1e-2, atol=1e-2, max_mismatched_ratio=0.01, skip_check=False,
                 manual_check_prog=None, cache_input_tensors=False, backend="event", early_stop=False,
                 early_stop_factor=2.0):
        if early_stop and early_stop_factor < 1.0:
            raise ValueError(f"early_stop_factor must be >= 1.0, got {early_stop_factor}")
        self.warmup, self.rep = warmup, rep
        self.supply_type, self.supply_prog = supply_type, supply_prog
        self.ref_prog, self.skip_check, self.manual_check_prog = ref_prog, skip_check, manual_check_prog
        self.tolerances = {"rtol": rtol, "atol": atol, "max_mismatched_ratio": max_mismatched_ratio}
        self.backend = backend
        self.early_stop_factor = early_stop_factor if early_stop else None


class AutotuneResult:
    def __init__(self, kernel, latency=None, config=None, ref_latency=None):
        self.kernel = kernel
        self.latency = latency
        self.config = config
        self.ref_latency = ref_latency

    @property
    def libcode(self):
        return self.kernel.get_kernel_source()

    @property
    def func(self):
        return self.kernel.prim_func


class NoInputs(ValueError):
    """Another configuration would not help."""


class Tuning:
    """One search: the best so far, and what all candidates share."""

    def __init__(self, options):
        self.options = options
        self.best = None
        self.inputs = captured_inputs[-1] if captured_inputs else None
        self.ref_latency = None
        self.last_failure = ""

    def inputs_for(self, profiler):
        if self.inputs is None and self.options.supply_prog is not None:
            self.inputs = self.options.supply_prog(profiler._get_params())
        elif self.inputs is None:
            if any(param.is_scalar() for param in profiler._get_params()):
                raise NoInputs("a program with scalar parameters needs `supply_prog` or `set_autotune_inputs` to be "
                               "tuned")
            self.inputs = profiler._get_inputs()
        return self.inputs

    def check(self, profiler, inputs):
        options = self.options
        if options.skip_check or options.ref_prog is None:
            return
        if options.manual_check_prog is not None:
            profiler.manual_assert_close(options.ref_prog, inputs, options.manual_check_prog)
        else:
            profiler.assert_allclose(options.ref_prog, inputs, **options.tolerances)

    def baseline(self):
        if self.options.early_stop_factor is None or self.best is None:
            return None
        return self.best.latency * self.options.early_stop_factor

    def measure(self, kernel, config):
        options = self.options
        profiler = kernel.get_profiler(tensor_supply_type=options.supply_type)
        inputs = self.inputs_for(profiler)
        self.check(profiler, inputs)
        timing = {"warmup": options.warmup, "rep": options.rep, "input_tensors": inputs, "backend": options.backend}
        latency = profiler.do_bench(early_stop_baseline=self.baseline(), **timing)
        if self.ref_latency is None and options.ref_prog is not None:
            self.ref_latency = profiler.do_bench(options.ref_prog, **timing)
        if self.best is None or latency < self.best.latency:
            self.best = AutotuneResult(kernel, latency, dict(config))
        return latency

    def try_config(self, compile_config, config):
        """A configuration that cannot be compiled or computes something else is left out."""
        try:
            latency = self.measure(compile_config(config), config)
        except NoInputs:
            raise
        except Exception as error:
            self.last_failure = f"{type(error).__name__}: {error}".split("\n")[0]
            print(f"Skipped {config}: {self.last_failure}", file=sys.stderr)
            return
        print(f"Tuned latency {latency} ms with {config}", file=sys.stderr)

    def result(self):
        if self.best is None:
            raise RuntimeError("Auto-tuning failed: no configuration could be compiled and checked. The last one: "
                               f"{self.last_failure}")
        self.best.ref_latency = self.ref_latency
        for name in ("latency", "config", "ref_latency"):
            setattr(self.best.kernel, name, getattr(self.best, name))
        return self.best


def parameter_names(function):
    code = function.__code__
    return code.co_varnames[:code.co_argcount + code.co_kwonlyargcount]


def check_configs(configs, names):
    if not configs:
        raise ValueError("No configurations to tune, please check your `@autotune` decorator")
    for config in configs:
        unused = set(config) - set(names) - {PASS_CONFIGS}
        if unused:
            raise ValueError(f"Unused keys in config: {unused}")


def chosen(configs):
    """Those that are tried, evenly spread."""
    count = min(len(configs), limits.autotune_limit)
    if count < len(configs):
        limits.announce(f"tuning tries {count} of {len(configs)} configurations",
                        "`--autotune-limit N` before the script lets it try more")
    return [configs[i * len(configs) // count] for i in range(count)]


def tune(configs, options, compile_config):
    configs = [{name: value for name, value in config.items() if name != PASS_CONFIGS} for config in configs]
    if limits.stages_only:
        return AutotuneResult(compile_config(configs[0]), config=configs[0])
    tuning = Tuning(options)
    for config in chosen(configs):
        tuning.try_config(compile_config, config)
    return tuning.result()


def freeze(value):
    """What a result is kept under: tensors by type, objects by identity."""
    if isinstance(value, (list, tuple)):
        return tuple(freeze(item) for item in value)
    if isinstance(value, dict):
        return tuple((name, freeze(item)) for name, item in sorted(value.items()))
    if hasattr(value, "shape") and hasattr(value, "stride"):
        return ("tensor", str(value.dtype), *value.shape)
    return value


class AutoTuneImpl:
    """A `@tilelang.jit` function whose missing arguments are found by trying."""

    def __init__(self, jit_impl, configs, options, do_not_specialize):
        self.jit_impl = jit_impl
        self.configs = configs
        self.options = options
        self.do_not_specialize = do_not_specialize or ()
        self.results = {}

    def key(self, args, kwargs):
        given = {**dict(zip(parameter_names(self.jit_impl.func), args)), **kwargs}
        return freeze({name: value for name, value in given.items() if name not in self.do_not_specialize})

    def search(self, args, kwargs):
        names = parameter_names(self.jit_impl.func)
        configs = self.configs(*args, **kwargs) if callable(self.configs) else self.configs
        configs = list(configs)
        check_configs(configs, names)
        tunable = [name for name in configs[0] if name != PASS_CONFIGS]
        if any(name in kwargs or names.index(name) < len(args) for name in tunable):
            return AutotuneResult(self.jit_impl.compile(*args, **kwargs), config={})

        def compile_config(config):
            kernel = self.jit_impl.compile(*args, **{**kwargs, **config})
            return kernel

        return tune(configs, self.options, compile_config)

    def tuned(self, args, kwargs):
        key = self.key(args, kwargs)
        if key not in self.results:
            self.results[key] = self.search(args, kwargs)
        return self.results[key]

    def compile(self, *args, **kwargs):
        return self.tuned(args, kwargs).kernel

    def __call__(self, *args, **kwargs):
        wants_kernel = kwargs.pop("__return_kernel", False)
        result = self.tuned(args, kwargs)
        if wants_kernel or self.jit_impl.mode == "lazy":
            return result.kernel
        return self.jit_impl(*args, **{**kwargs, **result.config})


def autotune(func=None, *, configs, do_not_specialize=None, **options):
    if func is not None:
        raise ValueError("`tilelang.autotune` needs arguments: write `@tilelang.autotune(configs=...)`")
    profile_options = ProfileOptions(**options)

    def decorate(jit_impl):
        assert hasattr(jit_impl, "mode") and hasattr(jit_impl, "compile"), \
            "`@tilelang.autotune` stands above `@tilelang.jit`"
        return AutoTuneImpl(jit_impl, configs, profile_options, do_not_specialize)

    return decorate


class AutoTuner:
    """The same for a function that returns a program, in steps."""

    def __init__(self, kernel, configs):
        self.kernel = kernel
        self.configs = configs
        self.out_idx = None
        self.profile_args = {}

    @classmethod
    def from_kernel(cls, kernel, configs):
        return cls(kernel, configs)

    def set_compile_args(self, out_idx=None, target="auto", execution_backend="auto", target_host=None, verbose=False,
                         pass_configs=None):
        self.out_idx = out_idx
        return self

    def set_profile_args(self, **options):
        ProfileOptions(**options)
        self.profile_args = options
        return self

    def compile_config(self, config):
        program = self.kernel(**config)
        return program if hasattr(program, "get_profiler") else tilelang.compile(program, out_idx=self.out_idx)

    def run(self, warmup=25, rep=100, timeout=180, **scheduling):
        early = {name: scheduling[name] for name in ("early_stop", "early_stop_factor") if name in scheduling}
        configs = list(self.configs() if callable(self.configs) else self.configs)
        check_configs(configs, parameter_names(getattr(self.kernel, "func", self.kernel)))
        options = ProfileOptions(**{**self.profile_args, "warmup": warmup, "rep": rep, **early})
        return tune(configs, options, self.compile_config)

    def __call__(self):
        return self.run()
