"""The backend `tilepilot` of torch.compile.

Dynamo guards what a graph was traced for: shapes (but for those that it passes as numbers), dtypes, devices, strides,
modes of layers. For each set of these numbers a graph has a version: eager's operators, with verified programs in the
place of regions that gain by it. A version is made at the first call that could use it."""

import dataclasses
import functools
import logging
import operator
import threading

import torch

from tilepilot.errors import TilePilotError, warn
from tilepilot.graphs.capture import NotCaptured, capture, is_gradient_mode, mutated_arguments
from tilepilot.graphs.devices import device_of, is_autocast_on, seconds_of_calls
from tilepilot.graphs.generation import Options, find_command, generated
from tilepilot.graphs.model_text import NoText, written_as_model
from tilepilot.graphs.region_call import NotUsed, RegionCall
from tilepilot.graphs.regions import find_regions, observe, random_numbers_kept
from tilepilot.locks import ForkSafeLock

_log = logging.getLogger("tilepilot")
_MOST_HALVINGS = 2
_MEASUREMENTS = 4  # which must all say that a graph is slower: other processes disturb one
_NOISE = 1.02  # regions gain by themselves; where they are a small part of a graph, its times differ by no more than this
_reports = threading.local()


@dataclasses.dataclass
class RegionReport:
    """What came of a region."""

    operators: list  # names, in order
    speedup: float | None  # against eager, as the judge measured; None: there was no program
    why: str  # where it stays eager's; "": the program runs

    @property
    def used(self):
        return not self.why


def tilepilot_backend(traced, example_inputs, *, mode=None, options=None):
    """What torch.compile calls with a graph. `mode="background"` runs eager's operators until a program is there."""
    if mode not in (None, "default", "background"):
        raise ValueError(f'the backend `tilepilot` has the modes "default" and "background", not {mode!r}')
    known = {field.name for field in dataclasses.fields(Options)}
    if unknown := sorted(set(options or {}) - known):
        raise TypeError(f"the backend `tilepilot` has no option `{unknown[0]}`: its options are "
                        f"{', '.join(sorted(known))}")
    chosen = Options(**(options or {}))
    chosen.background |= mode == "background"
    find_command(chosen)  # raises now, not at the first call
    return CompiledGraph(traced, chosen)


class CompiledGraph:
    def __init__(self, traced, options):
        self._traced, self._options = traced, options
        self._versions, self._told = {}, False
        self._enables_gradients = any(node.args[0] for node in traced.graph.nodes if is_gradient_mode(node))
        self._lock = ForkSafeLock()
        placeholders = [node for node in traced.graph.nodes if node.op == "placeholder"]
        self._numbers = [index for index, node in enumerate(placeholders)
                         if not isinstance(node.meta.get("example_value"), torch.Tensor)]
        self._reports = getattr(_reports, "reports", None)

    def __call__(self, *arguments):
        key = tuple([arguments[index] for index in self._numbers])
        version = self._versions.get(key)
        if version is None:
            version = self._new_version(key, arguments)
        return version(*arguments)

    def _new_version(self, key, arguments):
        eager = self._traced.forward
        if not self._may_run_programs(arguments):
            return eager  # this time
        with self._lock:
            if (version := self._versions.get(key)) is not None:
                return version
            if len(self._versions) >= self._options.versions:
                self._tell_that_there_are_many()
                return eager
            if not self._options.background:
                self._versions[key] = self._made(arguments)
                return self._versions[key]
            self._versions[key] = eager
        kept = tuple(value if isinstance(value, torch.nn.Parameter) else _copied(value) for value in arguments)
        threading.Thread(target=self._make_behind, args=(key, kept), daemon=True, name="tilepilot").start()
        return eager

    def _make_behind(self, key, arguments):
        try:
            version = self._made(arguments)
        except TilePilotError as error:
            warn(f"torch's operators run: {error}")
            return
        with self._lock:
            if key in self._versions:
                self._versions[key] = version

    def _made(self, arguments):
        found = []
        try:
            with torch.inference_mode(False):
                ordinary = [_copied(value) if isinstance(value, torch.Tensor) and value.is_inference() else value
                            for value in arguments]
                made = _version(self._traced, ordinary, self._options, found)
        except NotCaptured as error:
            found.append(RegionReport([], None, str(error)))
            made = None
        for report in found:
            _log.info("%s: %s", " ".join(report.operators[:6]) + (" ..." if len(report.operators) > 6 else ""),
                      report.why or f"{report.speedup:.2f}x of eager")
        if self._reports is not None:
            self._reports.extend(found)
        return made or self._traced.forward


    def _may_run_programs(self, arguments):
        """Whether a call could use a program. Under autocast, and where a gradient is wanted, torch's operators run."""
        if is_autocast_on():
            return False
        return not (torch.is_grad_enabled() or self._enables_gradients) or not any(
            isinstance(value, torch.Tensor) and value.requires_grad for value in arguments)

    def _tell_that_there_are_many(self):
        if not self._told:
            self._told = True
            warn(f"a graph was called with more than {self._options.versions} sets of sizes: torch's operators run for "
                 "the others")


def _copied(value):
    return value.detach().clone() if isinstance(value, torch.Tensor) else value


def _version(traced, arguments, options, reports):
    """The graph with programs in it; None where there is none."""
    captured = capture(traced, arguments)
    values = [*captured.constants, *arguments]
    calls, regions = {}, find_regions(captured)
    if not regions:
        reports.append(RegionReport([], None, "no operator in it can be computed by a program"))
    for _ in range(_MOST_HALVINGS + 1):
        observations = observe(captured, regions, values) if regions else {}
        smaller = []
        for region in regions:
            operators = [node.target._schema.name.removeprefix("aten::") for node in region.nodes
                         if isinstance(node.target, torch._ops.OpOverload)]
            try:
                calls[region], speedup = _program_for(region, observations[region], captured.weights, options)
                reports.append(RegionReport(operators, speedup, ""))
            except (NotUsed, NoText) as reason:
                speedup = reason.args[1] if len(reason.args) > 1 else None
                reports.append(RegionReport(operators, speedup, str(reason.args[0])))
                if speedup is None:  # there is a program for the whole, so parts of it gain nothing either
                    smaller += region.halves()
        regions = smaller
    if not calls:
        return None
    made = _assembled(captured, calls, len(arguments))
    seconds = functools.partial(_seconds, captured, values, made, traced.forward, arguments)
    return made if is_no_slower("the graph", seconds, reports) else None


def is_no_slower(what, seconds, reports):
    """Whether a measurement of ours and eager's `seconds` says so; else no report's program is used."""
    for _ in range(_MEASUREMENTS):
        ours, eagers = seconds()
        if ours <= eagers * _NOISE:
            return True
    for report in reports:
        if report.used:
            report.why = f"{what} is slower with its programs: {ours * 1e6:.0f} us, eager {eagers * 1e6:.0f} us"
    return False


def _seconds(captured, values, made, eager, arguments):
    """Of a call of the graph with programs, and of eager's; neither changes an argument or draws random numbers."""
    written = mutated_arguments(captured.graph)
    given = captured.placeholders[len(captured.constants):]
    own = [value.clone() if node in written else value for node, value in zip(given, arguments)]
    device = next((value.device for value in values if isinstance(value, torch.Tensor) and value.is_cuda),
                  torch.device("cpu"))
    with random_numbers_kept(captured, values), torch.no_grad():
        return seconds_of_calls(device, lambda: made(*own), lambda: eager(*own))


def _program_for(region, observation, weights, options):
    if observation.refusal:
        raise NotUsed(observation.refusal)
    model = written_as_model(region, observation, weights)
    outcome = generated(model.text, device_of(region.outputs[0]), options)
    if outcome.program is None:
        raise NotUsed(outcome.why, outcome.speedup)
    call = RegionCall(region, model, outcome.program)
    call.check(observation.inputs)
    return call, outcome.speedup


def _assembled(captured, calls, argument_count):
    """The graph's operators in their order, with a call in the place of each region's."""
    owner, graph, places = torch.nn.Module(), torch.fx.Graph(), {}
    owner.calls = list(calls.values())
    replaced = {node: None for region in calls for node in region.nodes}
    last = {region.nodes[-1]: (number, region) for number, region in enumerate(calls)}
    constants = captured.placeholders[:len(captured.constants)]
    for number, (node, value) in enumerate(zip(constants, captured.constants)):
        setattr(owner, f"constant_{number}", value)
        places[node] = graph.get_attr(f"constant_{number}")
    for node in captured.placeholders[len(constants):]:
        places[node] = graph.placeholder(node.name)
    for node in captured.graph.nodes:
        if node.op == "placeholder":
            continue
        if node not in replaced:
            places[node] = graph.node_copy(node, places.__getitem__)
            continue
        if node in last:
            number, region = last[node]
            setattr(owner, f"region_{number}", _CallModule(owner.calls[number]))
            results = graph.call_module(f"region_{number}", tuple(places[source] for source in region.inputs))
            for index, output in enumerate(region.outputs):
                places[output] = graph.call_function(operator.getitem, (results, index))
    return torch.fx.GraphModule(owner, graph).forward


class _CallModule(torch.nn.Module):
    def __init__(self, call):
        super().__init__()
        self.forward = call


class reported:
    """Collects what comes of the regions of graphs that are compiled in its block, on this thread."""

    def __enter__(self):
        _reports.reports = []
        return _reports.reports

    def __exit__(self, *_):
        _reports.reports = None
