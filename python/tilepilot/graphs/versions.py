"""A version of a graph: of eager's operators, those with verified programs in the place of regions, and what Inductor
makes of either, the one that is fastest on the values of a call."""

import dataclasses
import functools
import logging
import operator

import torch

from tilepilot.graphs import inductor
from tilepilot.graphs.agreement import InDouble, NotUsed, check_agreement, in_double
from tilepilot.graphs.capture import capture, mutated_arguments
from tilepilot.graphs.devices import device_of, seconds_of_calls
from tilepilot.graphs.generation import generated
from tilepilot.graphs.model_text import NoText, written_as_model
from tilepilot.graphs.region_call import RegionCall
from tilepilot.graphs.regions import computes, draws_numbers, find_regions, observe, random_numbers_kept

_log = logging.getLogger("tilepilot")
_MOST_HALVINGS = 2
_MEASUREMENTS = 4  # which must all say that a graph is slower: other processes disturb one
_NOISE = 1.02  # regions gain by themselves; where they are a small part of a graph, its times differ by no more than this


@dataclasses.dataclass
class RegionReport:
    """What came of a region, or of what no program computes."""

    operators: list  # names, in order
    speedup: float | None  # against eager: of a program as the judge measured, of Inductor's code that of the graph
    why: str  # where it stays eager's; "": `runs` says what computes it
    runs: str = "torch"  # "program", "inductor"

    @property
    def used(self):
        """Whether a program runs."""
        return self.runs == "program"

    def leave_to_torch(self, why):
        self.runs, self.why = "torch", why


def version_of(traced, arguments, options, reports):
    """A function of the arguments; None where eager's operators are best."""
    captured = capture(traced, arguments)
    constants, values = len(captured.constants), [*captured.constants, *arguments]
    calls = _find_programs(captured, values, options, reports)
    sides = {"torch": lambda *given: traced.forward(*given[constants:])}
    graph, calling = _with_programs(captured, calls)
    if calls:
        sides["program"] = _module_of(graph, calling).forward
    if options.inductor:
        sides |= _inductor_sides(captured, values, graph, calling, sides["torch"])
    if len(sides) == 1:
        return None
    chosen, ratio = _fastest(captured, values, sides, reports)
    if chosen.startswith("inductor"):
        programs = calls if chosen == "inductor with programs" else {}
        inside = {node for region in programs for node in region.nodes}
        rest = [node for node in captured.graph.nodes if node not in inside]
        reports.append(RegionReport(_names(rest), ratio, "", "inductor"))
    if chosen == "torch":
        return None
    return functools.partial(sides[chosen], *captured.constants)


def _names(nodes):
    return [node.target._schema.name.removeprefix("aten::") for node in nodes
            if isinstance(node.target, torch._ops.OpOverload)]


def _find_programs(captured, values, options, reports):
    """The call of a program for each region that has one."""
    calls, regions = {}, find_regions(captured)
    if not regions:
        reports.append(RegionReport([], None, "no operator in it can be computed by a program"))
    for _ in range(_MOST_HALVINGS + 1):
        observations = observe(captured, regions, values) if regions else {}
        smaller = []
        for region in regions:
            try:
                calls[region], speedup = _program_for(region, observations[region], captured.weights, options)
                reports.append(RegionReport(_names(region.nodes), speedup, "", "program"))
            except (NotUsed, NoText) as reason:
                outcome = reason.outcome if isinstance(reason, _NoProgram) else None
                reports.append(RegionReport(_names(region.nodes), outcome and outcome.speedup, str(reason)))
                # Where there is a program for the whole, parts of it gain nothing either.
                if outcome is None or (outcome.speedup is None and outcome.parts_may_gain):
                    smaller += region.halves()
        regions = smaller
    return calls


class _NoProgram(NotUsed):
    """There is none worth having, as the author and the judge said."""

    def __init__(self, outcome):
        super().__init__(outcome.why)
        self.outcome = outcome


def _program_for(region, observation, weights, options):
    if observation.refusal:
        raise NotUsed(observation.refusal)
    model = written_as_model(region, observation, weights)
    outcome = generated(model.text, device_of(region.outputs[0]), options)
    if outcome.program is None:
        raise _NoProgram(outcome)
    call = RegionCall(region, model, outcome.program)
    call.check(observation.inputs)
    return call, outcome.speedup


def _with_programs(captured, calls):
    """The graph's operators in their order, with a node in the place of each region; and the call of each such node."""
    graph, places, calling = torch.fx.Graph(), {}, {}
    replaced = {node: None for region in calls for node in region.nodes}
    last = {region.nodes[-1]: region for region in calls}
    for node in captured.placeholders:
        places[node] = graph.placeholder(node.name)
    for node in captured.graph.nodes:
        if node.op == "placeholder":
            continue
        if node not in replaced:
            places[node] = graph.node_copy(node, places.__getitem__)
        elif region := last.get(node):
            results = graph.call_module(f"region_{len(calling)}", tuple(places[source] for source in region.inputs))
            calling[results] = calls[region]
            for index, output in enumerate(region.outputs):
                places[output] = graph.call_function(operator.getitem, (results, index))
    return graph, calling


def _module_of(graph, calling):
    owner = torch.nn.Module()
    for node, call in calling.items():
        setattr(owner, node.target, _CallModule(call))
    return torch.fx.GraphModule(owner, graph)


class _CallModule(torch.nn.Module):
    def __init__(self, call):
        super().__init__()
        self.forward = call


def _inductor_sides(captured, values, graph, calling, eager):
    """What Inductor makes of the graph without and with programs, as far as it agrees with eager."""
    graphs = {}
    if any(map(computes, captured.graph.nodes)):
        graphs["inductor"] = captured.graph, {}
    if calling and any(map(computes, graph.nodes)):
        graphs["inductor with programs"] = graph, {node: inductor.OpaqueCall(call) for node, call in calling.items()}
    sides, expected = {}, None
    for name, (source, programs) in graphs.items():
        try:
            side = inductor.compiled(source, values, programs, draws=draws_numbers(captured))
            expected = expected or _results(captured, values, eager)
            found = _results_of_code(captured, values, side)
            check_agreement("Inductor's code", found, expected, lambda: _truths(captured, values))
            sides[name] = side
        except NotUsed as reason:
            _log.info("%s", reason)
    return sides


def _results(captured, values, call):
    """What a call returns, and what it leaves in the arguments that it writes to, which are copies."""
    written = mutated_arguments(captured.graph)
    own = captured.copied_where_written(values)
    with random_numbers_kept(captured, values), torch.no_grad():
        results = call(*own)
    return [*results, *(value for node, value in zip(captured.placeholders, own) if node in written)]


def _results_of_code(captured, values, code):
    try:
        return _results(captured, values, code)
    except Exception as error:  # memory, or a launch that this machine refuses
        raise NotUsed(f"Inductor's code fails: {(str(error).strip() or repr(error)).splitlines()[0]}") from error


def _truths(captured, values):
    """Results in double precision; None where they cannot be had."""
    module = torch.fx.GraphModule(torch.nn.Module(), captured.graph)
    try:
        # Converted before they are copied, so that what the graph writes to them is found in the copies.
        return _results(captured, [in_double(value) for value in values], InDouble(module).run)
    except Exception as error:  # memory, or an operator that has no double precision
        _log.info("no results in double precision: %s", error)
        return None


def _fastest(captured, values, sides, reports):
    """The name of the side to use, and its speed against eager's."""
    own = captured.copied_where_written(values)
    device = next((value.device for value in values if isinstance(value, torch.Tensor) and value.is_cuda),
                  torch.device("cpu"))
    programs = [name for name in sides if "program" in name]
    least = dict.fromkeys(sides, float("inf"))
    for _ in range(_MEASUREMENTS if programs else 1):
        with random_numbers_kept(captured, values), torch.no_grad():
            found = seconds_of_calls(device, *[functools.partial(call, *own) for call in sides.values()])
        times = dict(zip(sides, found))
        _log.info("a call of the graph: %s", ", ".join(f"{name} {time * 1e6:.0f} us" for name, time in times.items()))
        least = {name: min(least[name], times[name]) for name in sides}
        others = min(times[name] for name in sides if name not in programs)
        if programs and (best := min(programs, key=times.get)) and times[best] <= others * _NOISE:
            return best, times["torch"] / times[best]
    for report in reports:
        if report.used:
            ours = min(least[name] for name in programs)
            other = min((name for name in sides if name not in programs), key=least.get)
            report.leave_to_torch(f"the graph is slower with its programs: {ours * 1e6:.0f} us, "
                                  f"{_SPOKEN[other]} {least[other] * 1e6:.0f} us")
    if least.get("inductor", float("inf")) * _NOISE < least["torch"]:
        return "inductor", least["torch"] / least["inductor"]
    return "torch", 1.0


_SPOKEN = {"torch": "eager", "inductor": "Inductor's code"}


def is_no_slower(what, seconds, reports):
    """Whether a measurement of ours and eager's `seconds` says so; else torch computes all of it."""
    for _ in range(_MEASUREMENTS):
        ours, eagers = seconds()
        if ours <= eagers * _NOISE:
            return True
    for report in reports:
        if report.runs != "torch":
            report.leave_to_torch(f"{what} is slower so: {ours * 1e6:.0f} us, eager {eagers * 1e6:.0f} us")
    return False
