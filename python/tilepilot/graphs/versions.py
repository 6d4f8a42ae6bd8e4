"""A version of a graph: of eager's operators, those with verified programs in the place of regions, and what Inductor
makes of either, the one that is fastest on the values of a call."""

import functools
import logging
import math
import operator

import torch

from tilepilot.graphs import inductor
from tilepilot.graphs.agreement import InDouble, NotUsed, check_agreement, in_double
from tilepilot.graphs.capture import capture, mutated_arguments
from tilepilot.graphs.devices import seconds_of_calls
from tilepilot.graphs.regions import computes, draws_numbers, names_of, random_numbers_kept
from tilepilot.graphs.reports import RegionReport
from tilepilot.graphs.search import find_programs

_log = logging.getLogger("tilepilot")
_MEASUREMENTS = 4  # whose least times count: other processes disturb one
_NOISE = 1.02  # regions gain by themselves; where they are a small part of a graph, its times differ by no more than this
_PLAIN = 1.1  # a ratio that needs no further measurement


def version_of(traced, arguments, options, reports):
    """A function of the arguments; None where eager's operators are best."""
    captured = capture(traced, arguments)
    constants, values = len(captured.constants), [*captured.constants, *arguments]
    calls = find_programs(captured, values, options, reports)
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
        reports.append(RegionReport(names_of(rest), ratio, "", "inductor"))
    if chosen == "torch":
        return None
    return functools.partial(sides[chosen], *captured.constants)


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
    others = [name for name in sides if name not in programs]

    def measured():
        with random_numbers_kept(captured, values), torch.no_grad():
            found = seconds_of_calls(device, *[functools.partial(call, *own) for call in sides.values()])
        _log.info("a call of the graph: %s",
                  ", ".join(f"{name} {time * 1e6:.0f} us" for name, time in zip(sides, found)))
        return dict(zip(sides, found))

    def ratio(least):
        return min(least[name] for name in programs) / min(least[name] for name in others) if programs else math.inf

    least = _least_times(measured, ratio)
    if ratio(least) <= _NOISE:
        best = min(programs, key=least.get)
        return best, least["torch"] / least[best]
    for report in reports:
        if report.used:
            ours, other = min(least[name] for name in programs), min(others, key=least.get)
            report.leave_to_torch(f"the graph is slower with its programs: {ours * 1e6:.0f} us, "
                                  f"{_SPOKEN[other]} {least[other] * 1e6:.0f} us")
    if least.get("inductor", float("inf")) * _NOISE < least["torch"]:
        return "inductor", least["torch"] / least["inductor"]
    return "torch", 1.0


_SPOKEN = {"torch": "eager", "inductor": "Inductor's code"}


def _least_times(measured, ratio):
    """The least of several measurements of {side: seconds}, of fewer where their `ratio` of two sides is plain."""
    least = measured()
    for _ in range(_MEASUREMENTS - 1):
        if not 1 / _PLAIN < ratio(least) < _PLAIN:
            break
        least = {name: min(seconds, least[name]) for name, seconds in measured().items()}
    return least


def is_no_slower(what, seconds, reports):
    """Whether measurements of ours and eager's `seconds` say so; else torch computes all of it."""
    least = _least_times(lambda: dict(zip(("ours", "eager"), seconds())), lambda times: times["ours"] / times["eager"])
    ours, eagers = least["ours"], least["eager"]
    if ours <= eagers * _NOISE:
        return True
    for report in reports:
        if report.runs != "torch":
            report.leave_to_torch(f"{what} is slower so: {ours * 1e6:.0f} us, eager {eagers * 1e6:.0f} us")
    return False
