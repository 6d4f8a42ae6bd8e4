# The search for the fastest configuration of a program. Configurations are staged, those that the run allows are
# compiled side by side and measured one after another, and what was measured is kept on disk.
import sys

import _tilepilot_device as gpu
import _tilepilot_limits as limits
import _tilepilot_tuning as native
import torch
from tilelang.utils.tensor import TensorSupplyType

# A key of a configuration that is no parameter: options of the compiler, which has none here.
PASS_CONFIGS = "pass_configs"
# Configurations that are staged to be ranked: some milliseconds each.
MOST_RANKED = 1000
# Inputs given with set_autotune_inputs, innermost last.
captured_inputs = []


def without_pass_configs(configs):
    return [{name: value for name, value in config.items() if name != PASS_CONFIGS} for config in configs]


def freeze(value):
    """What a result is kept under: tensors by type, objects by identity."""
    if isinstance(value, (list, tuple)):
        return tuple(freeze(item) for item in value)
    if isinstance(value, dict):
        return tuple((name, freeze(item)) for name, item in sorted(value.items()))
    if hasattr(value, "shape") and hasattr(value, "stride"):
        return ("tensor", str(value.dtype), *value.shape)
    return value


class ProfileOptions:
    """How the candidates are run, checked and timed."""

    def __init__(self, warmup=25, rep=100, timeout=100, supply_type=TensorSupplyType.Auto, ref_prog=None,
                 supply_prog=None, rtol=1e-2, atol=1e-2, max_mismatched_ratio=0.01, skip_check=False,
                 manual_check_prog=None, cache_input_tensors=False, backend="event", early_stop=False,
                 early_stop_factor=2.0):
        if timeout <= 0:
            raise ValueError(f"timeout must be positive, got {timeout}")
        if early_stop and early_stop_factor < 1.0:
            raise ValueError(f"early_stop_factor must be >= 1.0, got {early_stop_factor}")
        self.warmup, self.rep = warmup, rep
        self.supply_type, self.supply_prog = supply_type, supply_prog
        self.ref_prog, self.skip_check, self.manual_check_prog = ref_prog, skip_check, manual_check_prog
        self.tolerances = {"rtol": rtol, "atol": atol, "max_mismatched_ratio": max_mismatched_ratio}
        self.backend = backend
        self.timeout = timeout
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


class GpuLost(RuntimeError):
    """A kernel failed in a way that no other one survives."""


class Record:
    """What was measured of a list of configurations, by this search and by earlier ones."""

    def __init__(self, key):
        self.key = key
        found = None if key is None else limits.find_tuning(key)
        usable = isinstance(found, dict) and isinstance(found.get("tried"), dict)
        self.tried = found["tried"] if usable else {}
        self.ref_latency = found.get("ref_ms") if usable else None

    def find(self, config):
        """Milliseconds and the reason of a failure, one of them None; or None."""
        entry = self.tried.get(repr(config))
        return (entry.get("ms"), entry.get("failure")) if isinstance(entry, dict) else None

    def add(self, config, latency=None, failure=None):
        self.tried[repr(config)] = {"ms": latency, "failure": failure}

    def content(self):
        return {"tried": self.tried, "ref_ms": self.ref_latency}

    def with_failure(self, config, failure):
        """Its content if the configuration failed."""
        return {**self.content(), "tried": {**self.tried, repr(config): {"ms": None, "failure": failure}}}

    def keep(self):
        if self.key is not None:
            limits.keep_tuning(self.key, self.content())


def described(error):
    return f"{type(error).__name__}: {error}".split("\n")[0]


def device():
    """What the model of tile sizes is asked about."""
    return {"architecture": limits.architecture, "multiprocessors": gpu.multiprocessors if gpu.is_gpu else None}


def spread(items, count):
    """So many of them, evenly."""
    return [items[i * len(items) // count] for i in range(count)]


def varied(times):
    """Positions, the best time first; but of those that the model cannot tell apart two come before all others, and the
    rest of them at the end."""
    first, last, of_equals, count = [], [], None, 0
    for time, position in sorted(times, key=lambda pair: (pair[0], -pair[1])):
        if of_equals is None or time > 1.002 * of_equals:
            of_equals, count = time, 0
        count += 1
        (first if count <= 2 else last).append(position)
    return first + last


class Search:
    """One search for the fastest of several configurations. `stage_config` makes a kernel of a configuration, which is
    not compiled yet."""

    def __init__(self, configs, options, stage_config, source, limit=None,
                 more="`--autotune-limit N` before the script"):
        self.configs = configs
        self.more = more
        self.stage_config = stage_config
        self.source = source
        self.limit = limits.autotune_limit if limit is None else limit
        self.tuning = Tuning(options)
        self.kernels = {}
        self.failures = {}
        self.measured = set()
        self.record = None

    def stage(self, config):
        """The kernel, or None: then there is a failure."""
        name = repr(config)
        if name not in self.kernels and name not in self.failures:
            try:
                self.kernels[name] = self.stage_config(config)
            except Exception as error:
                self.failures[name] = described(error)
        return self.kernels.get(name)

    def key(self):
        """All that measurements depend on."""
        options = self.tuning.options
        kernel = next((kernel for kernel in map(self.stage, self.configs) if kernel is not None), None)
        if kernel is None:
            return None
        shapes = freeze(self.tuning.inputs)
        if shapes is None and any(not isinstance(extent, int) for param in kernel.params for extent in param.shape):
            shapes = freeze(self.tuning.inputs_for(kernel.get_profiler(tensor_supply_type=options.supply_type)))
        checked = options.ref_prog is not None and not options.skip_check
        parts = [limits.identity, self.source, native.program_text(kernel), self.configs, checked,
                 options.ref_prog is not None, shapes]
        return repr(parts)

    def estimate(self, config):
        """What the model says of a configuration; None if it does not know, as of the processor."""
        kernel = self.stage(config)
        return native.estimate(kernel, device()) if limits.architecture and kernel is not None else None

    def ranked(self):
        """The configurations, what the model thinks best first; None if it does not know all of them."""
        times = []
        considered = spread(self.configs, min(len(self.configs), MOST_RANKED))
        for position, config in enumerate(considered):
            if self.stage(config) is None:
                continue
            estimate = self.estimate(config)
            if estimate is None:
                return None
            if "refusal" in estimate:
                self.failures[repr(config)] = estimate["refusal"]
            else:
                times.append((estimate["ms"], position))
        return [considered[position] for position in varied(times)]

    def chosen(self):
        """Those that are tried: the model's favourites, or evenly spread ones. Empty if as many were tried before."""
        count = min(len(self.configs), self.limit)
        if count < len(self.configs):
            limits.announce(f"tuning tries {count} of {len(self.configs)} configurations",
                            f"{self.more} lets it try more")
        if len(self.record.tried) >= count:
            return []
        ranked = self.ranked() if count < len(self.configs) else None
        if ranked:
            return ranked[:count]
        return spread(self.configs, count)

    def fail(self, config, reason):
        self.tuning.last_failure = reason
        self.record.add(config, failure=reason)
        print(f"Skipped {config}: {reason}", file=sys.stderr)

    def keep(self):
        """After each measurement, so that a run that is ended loses none."""
        self.record.ref_latency = self.tuning.ref_latency
        self.record.keep()

    def timed(self, config):
        """Milliseconds. What takes too long ends this process: another one leaves the configuration out."""
        seconds = self.tuning.options.timeout
        reason = f"it did not end within {seconds} seconds"
        limits.begin_trial(seconds, self.record.key, self.record.with_failure(config, reason), f"{config}: {reason}")
        try:
            return self.tuning.measure(self.kernels[repr(config)], config)
        finally:
            limits.end_trial()

    def measure(self, config):
        """A configuration that computes something else, or fails, is left out."""
        try:
            latency = self.timed(config)
        except NoInputs:
            raise
        except Exception as error:
            self.fail(config, described(error))
            self.check_gpu(config)
            return
        self.record.add(config, latency)
        self.measured.add(repr(config))
        self.keep()
        print(f"Tuned latency {latency} ms with {config}", file=sys.stderr)

    def check_gpu(self, config):
        if not gpu.is_gpu:
            return
        try:
            torch.cuda.synchronize()
        except Exception as error:
            self.record.keep()
            limits.begin_anew(self.record.key, self.record.content(),
                              f"{config}: the GPU failed while it ran: {described(error)}")
            raise GpuLost(f"the GPU failed while {config} ran: {error}. What was measured before is kept; another run "
                          "leaves this configuration out")

    def try_all(self, configs):
        """Compiles them side by side, then measures one after another."""
        staged = []
        for config in configs:
            if self.stage(config) is None:
                self.fail(config, self.failures[repr(config)])
            elif all(repr(config) != repr(other) for other in staged):
                staged.append(config)
        reasons = native.compile_all([self.kernels[repr(config)] for config in staged])
        for config, reason in zip(staged, reasons):
            if reason is None:
                self.measure(config)
            else:
                self.fail(config, reason)

    def run(self):
        self.record = Record(self.key())
        self.tuning.ref_latency = self.record.ref_latency
        unknown = []
        for config in self.chosen():
            known = self.record.find(config)
            if known is None:
                unknown.append(config)
            elif known[1] is not None:
                self.fail(config, known[1])
        self.try_all(unknown)
        # A search in which nothing ran may do better another time.
        if self.measured:
            self.keep()
        return self.result()

    def result(self):
        """The fastest that can still be compiled."""
        times = [(self.record.find(config)[0], position) for position, config in enumerate(self.configs)
                 if self.record.find(config) is not None and self.record.find(config)[0] is not None]
        for latency, position in sorted(times):
            config = self.configs[position]
            kernel = self.stage(config)
            reason = self.failures[repr(config)] if kernel is None else native.compile_all([kernel])[0]
            if reason is not None:
                self.fail(config, reason)
                continue
            if not self.measured:
                print(f"Tuned before: {latency} ms with {config}", file=sys.stderr)
            result = AutotuneResult(kernel, latency, dict(config), self.record.ref_latency)
            for name in ("latency", "config", "ref_latency"):
                setattr(kernel, name, getattr(result, name))
            return result
        raise RuntimeError("Auto-tuning failed: no configuration could be compiled and checked. The last one: "
                           f"{self.tuning.last_failure}")


def fastest(configs, options, stage_config, function):
    return Search(configs, options, stage_config, native.source_text(function)).run()
