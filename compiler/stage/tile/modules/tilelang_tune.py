# `tilepilot tune`: the fastest configuration of a call, and a table of what was tried. A program that is decorated with
# `@tilelang.autotune` brings its configurations; of another one, the parameters that have the usual names of tile sizes
# are varied.
import itertools

import _tilepilot_limits as limits
import _tilepilot_tuning as native
import tilelang
from tilelang._search import ProfileOptions, Search, device, without_pass_configs
from tilelang.autotuner import AutoTuneImpl, parameter_names

BLOCKS, DEPTHS = (16, 32, 64, 128, 256), (16, 32, 64, 128)
# What is tried for a parameter; names are compared without underscores and case.
VALUES = {
    "blockm": BLOCKS,
    "blockn": BLOCKS,
    "blockk": DEPTHS,
    "numstages": (1, 2, 3, 4),
    "stages": (1, 2, 3, 4),
    "threads": (128, 256),
    "numthreads": (128, 256),
    "threadnum": (128, 256),
}
# Times of a configuration: long enough to tell the fastest of a few apart.
WARMUP, REPEATS = 10, 50


class NotTunable(ValueError):
    """The call leaves nothing to choose, or is none of a tile program."""


def plain_name(name):
    return name.replace("_", "").lower()


def sizes_of(names, args, kwargs):
    """Extents that the call gives, by plain names."""
    given = {**dict(zip(names, args)), **kwargs}
    return {plain_name(name): value for name, value in given.items() if isinstance(value, int)}


def values_of(name, sizes):
    """Tiles of which more than half would be empty are left out, and those of which it would take a hundred."""
    values = VALUES[plain_name(name)]
    extent = sizes.get(plain_name(name)[len("block"):]) if plain_name(name).startswith("block") else None
    if extent is None:
        return values
    fitting = [value for value in values if value < 2 * extent] or values[:1]
    return [value for value in fitting if value * 100 > extent] or fitting[-1:]


class Subject:
    """What is tuned: its configurations, how to stage one, its text, and how it is measured."""

    def __init__(self, function, name, args, kwargs):
        self.options = ProfileOptions(warmup=WARMUP, rep=REPEATS)
        if isinstance(function, AutoTuneImpl):
            self.configs = without_pass_configs(function.configs_for(args, kwargs))
            self.stage_config = function.stage_config(args, kwargs)
            self.options = function.options
            function = function.jit_impl.func
        else:
            self.configs = self.varied(function, name, args, kwargs)
        self.source = native.source_text(getattr(function, "func", function))
        if not self.configs:
            raise NotTunable(f"the call of `{name}` gives all that would be tuned")

    def varied(self, function, name, args, kwargs):
        is_jit = hasattr(function, "mode") and hasattr(function, "compile")
        inner = function.func if is_jit else function
        if not hasattr(inner, "__code__"):
            raise NotTunable(f"`{name}` is no function that makes a tile program, but a `{type(function).__name__}`")
        names = parameter_names(inner)
        left = [each for position, each in enumerate(names)
                if plain_name(each) in VALUES and each not in kwargs and position >= len(args)]
        if not left:
            raise NotTunable(f"`{name}` has no parameter to tune that the call leaves open")
        self.stage_config = lambda config: staged(function, is_jit, args, {**kwargs, **config})
        sizes = sizes_of(names, args, kwargs)
        return [dict(zip(left, values)) for values in itertools.product(*(values_of(each, sizes) for each in left))]


def staged(function, is_jit, args, kwargs):
    if is_jit:
        return function.compile(*args, **kwargs)
    program = function(*args, **kwargs)
    return program if hasattr(program, "get_profiler") else tilelang.compile(program)


def shown(value):
    return f"{value:.4f}" if isinstance(value, float) else "-" if value is None else str(value)


def rate_of(kernel, milliseconds):
    """Operations of a second in 10^12; None if only a call knows how many there are."""
    work = native.workload(kernel, {**device(), "architecture": limits.architecture or "sm_90a"})
    return None if work is None or milliseconds is None else work["operations"] / milliseconds / 1e9


def print_table(rows):
    names = list(rows[0]["config"])
    lines = [["ms", "model ms", "TFLOP/s", *names]]
    for row in rows:
        lines.append([shown(row["ms"]), shown(row["model_ms"]), shown(row["tflops"]), *(shown(row["config"][name]) for name in names)])
    widths = [max(len(line[column]) for line in lines) for column in range(len(lines[0]))]
    for line in lines:
        print("  ".join(cell.rjust(width) for cell, width in zip(line, widths)))


def rows_of(search):
    """What is known of the configurations, the fastest first, then those that failed."""
    rows = []
    for config in search.configs:
        known = search.record.find(config)
        if known is None:
            continue
        estimate = search.estimate(config) or {}
        kernel = search.stage(config)
        rows.append({"config": config, "ms": known[0], "model_ms": estimate.get("ms"), "bound": estimate.get("bound"),
                     "tflops": None if kernel is None else rate_of(kernel, known[0]), "failure": known[1],
                     "measured_now": repr(config) in search.measured})
    return sorted(rows, key=lambda row: (row["ms"] is None, row["ms"] or 0.0))


def tune_call(function, name, args, kwargs, limit, time_limit):
    """What `tilepilot tune` prints, and a dict of it. {"unusable": reason} if there is nothing to tune."""
    try:
        subject = Subject(function, name, args, kwargs)
    except NotTunable as reason:
        return {"unusable": str(reason)}
    subject.options.timeout = time_limit
    search = Search(subject.configs, subject.options, subject.stage_config, subject.source, limit, "`--limit N`")
    best = search.run()
    rows = rows_of(search)
    succeeded = [row for row in rows if row["ms"] is not None]
    print(f"{name} on {limits.device}: {len(search.configs)} configurations, {len(succeeded)} measured, "
          f"{len(search.measured)} of them now")
    print_table(succeeded)
    print("best: " + ", ".join(f"{key}={value}" for key, value in best.config.items()) + f" with {best.latency:.4f} ms")
    return {"best": best.config, "best_ms": best.latency, "reference_ms": best.ref_latency, "device": limits.device,
            "architecture": limits.architecture, "configurations": len(search.configs), "rows": rows}
