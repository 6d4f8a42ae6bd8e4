# `tilelang.autotuner` for scripts: programs whose missing arguments are found by trying. The search is in
# tilelang_search.py.
import _tilepilot_limits as limits
import tilelang
from tilelang._search import (PASS_CONFIGS, AutotuneResult, ProfileOptions, captured_inputs, fastest, freeze,
                              without_pass_configs)


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


def tune(configs, options, stage_config, function):
    configs = without_pass_configs(configs)
    if limits.stages_only:
        return AutotuneResult(stage_config(configs[0]), config=configs[0])
    return fastest(configs, options, stage_config, function)


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

    def configs_for(self, args, kwargs):
        """The configurations of a call; empty if the call gives what would be tuned itself."""
        names = parameter_names(self.jit_impl.func)
        configs = list(self.configs(*args, **kwargs) if callable(self.configs) else self.configs)
        check_configs(configs, names)
        tunable = [name for name in configs[0] if name != PASS_CONFIGS]
        given = any(name in kwargs or names.index(name) < len(args) for name in tunable)
        return [] if given else configs

    def stage(self, args, kwargs):
        """The kernel, which is compiled when it is called."""
        return getattr(self.jit_impl, "stage", self.jit_impl.compile)(*args, **kwargs)

    def stage_config(self, args, kwargs):
        return lambda config: self.stage(args, {**kwargs, **config})

    def search(self, args, kwargs):
        configs = self.configs_for(args, kwargs)
        if not configs:
            return AutotuneResult(self.stage(args, kwargs), config={})
        return tune(configs, self.options, self.stage_config(args, kwargs), self.jit_impl.func)

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
        options = ProfileOptions(**{**self.profile_args, "warmup": warmup, "rep": rep, "timeout": timeout, **early})
        return tune(configs, options, self.compile_config, getattr(self.kernel, "func", self.kernel))

    def __call__(self):
        return self.run()
