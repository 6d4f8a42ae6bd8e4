"""Programs for the regions of a graph, within one time for all of them: first for those that take eager longest."""

import time

from tilepilot.graphs.agreement import NotUsed
from tilepilot.graphs.devices import device_of, seconds_of_calls
from tilepilot.graphs.generation import generated, not_sought
from tilepilot.graphs.model_text import NoText, written_as_model
from tilepilot.graphs.region_call import RegionCall
from tilepilot.graphs.regions import find_regions, names_of, observe
from tilepilot.graphs.reports import RegionReport

_MOST_HALVINGS = 2
_LEAST_SLICE = 0.5  # minutes of a search, where they are left
_LEAST_SHARE = 0.02  # of eager's time for all regions: nobody waits for a program that makes less of it faster


def find_programs(captured, values, options, reports):
    """The call of a program for each region that has one."""
    regions = find_regions(captured)
    if not regions:
        reports.append(RegionReport([], None, "no operator in it can be computed by a program"))
        return {}
    search = _Search(captured.weights, options, reports)
    for _ in range(_MOST_HALVINGS + 1):
        regions = search.go_through(regions, observe(captured, regions, values)) if regions else []
    return search.calls


class _NoProgram(NotUsed):
    """There is none worth having, as the author and the judge said."""

    def __init__(self, outcome):
        super().__init__(outcome.why)
        self.outcome = outcome


class _Search:
    def __init__(self, weights, options, reports):
        self.calls = {}
        self._weights, self._options, self._reports = weights, options, reports
        self._end = time.monotonic() + options.minutes * 60
        self._whole = None  # seconds that eager takes for the regions of the graph

    def go_through(self, regions, observations):
        """Adds to `calls`; returns parts of regions that may have programs where the whole has none."""
        seconds = {region: _eager_seconds(region, observations[region]) for region in regions}
        if self._whole is None:
            self._whole = sum(seconds.values())
        waiting, parts = sum(seconds.values()), []
        for region in sorted(regions, key=seconds.get, reverse=True):
            outcome = None
            try:
                call, speedup = self._program_for(region, observations[region], seconds[region], waiting)
                self.calls[region] = call
                self._reports.append(RegionReport(names_of(region.nodes), speedup, "", "program"))
            except (NotUsed, NoText) as reason:
                outcome = reason.outcome if isinstance(reason, _NoProgram) else None
                self._reports.append(RegionReport(names_of(region.nodes), outcome and outcome.speedup, str(reason)))
                # Where there is a program for the whole, parts of it gain nothing either.
                if outcome is None or (outcome.speedup is None and outcome.parts_may_gain):
                    parts += region.halves()
            waiting -= seconds[region]
        return parts

    def _program_for(self, region, observation, seconds, waiting):
        if observation.refusal:
            raise NotUsed(observation.refusal)
        if seconds < self._whole * _LEAST_SHARE:
            raise _NoProgram(not_sought(f"it takes only {seconds / self._whole:.1%} of the graph's time"))
        model = written_as_model(region, observation, self._weights)
        left = (self._end - time.monotonic()) / 60
        minutes = min(left, max(left * seconds / waiting, _LEAST_SLICE))
        outcome = generated(model.text, device_of(region.outputs[0]), self._options, minutes)
        if outcome.program is None:
            raise _NoProgram(outcome)
        call = RegionCall(region, model, outcome.program)
        call.check(observation.inputs)
        return call, outcome.speedup


def _eager_seconds(region, observation):
    if observation.refusal:
        return 0.0
    return seconds_of_calls(device_of(region.outputs[0]), lambda: region.module.forward(*observation.inputs))[0]
