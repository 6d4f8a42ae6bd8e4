"""torch.compile(backend="tilepilot") on twelve models, beside eager and Inductor. One line a model.

usage: PYTHONPATH=build/package python tests/bench/models/compare.py [--device cuda|cpu] [--dtype float32] [--minutes M]
       [--no-inductor] [MODEL...]

Times are the median of calls in turn, each of the three in each turn. The exit status is 1 where results differ from
eager's or a model is slower than eager by more than 3 %, which is what two measurements of one model differ by."""

import argparse
import math
import statistics
import sys
import time

import torch

import tilepilot
from models import MAKERS, made

TURNS = 15
NOISE = 0.97


def seconds(call, device):
    """Of one call among others."""
    repeats = 10 if device == "cuda" else 1
    if device == "cuda":
        torch.cuda.synchronize()
    begin = time.perf_counter()
    for _ in range(repeats):
        call()
    if device == "cuda":
        torch.cuda.synchronize()
    return (time.perf_counter() - begin) / repeats


def medians(calls, device):
    for call in calls:
        call(), call()
    times = [[] for _ in calls]
    for _ in range(TURNS):
        for call, found in zip(calls, times):
            found.append(seconds(call, device))
    return [statistics.median(found) for found in times]


def difference(found, expected):
    """The largest, in standard deviations of what is expected."""
    return ((found.double() - expected.double()).abs().max() / expected.double().std()).item()


def compared(name, arguments):
    """Speed of ours and of Inductor over eager's, and whether all is well."""
    model, inputs = made(name, arguments.device, getattr(torch, arguments.dtype))
    begin = time.perf_counter()
    ours = tilepilot.optimize(model, inputs, minutes=arguments.minutes)
    took = time.perf_counter() - begin
    calls = [lambda: model(*inputs), lambda: ours(*inputs)]
    if arguments.inductor:
        inductor = torch.compile(model)
        calls.append(lambda: inductor(*inputs))
    with torch.no_grad():
        error = difference(ours(*inputs), model(*inputs))
        eager, mine, *others = medians(calls, arguments.device)
    used = [region for region in ours.tilepilot_regions if region.used]
    inductors = ", Inductor" if any(region.runs == "inductor" for region in ours.tilepilot_regions) else ""
    right = error < (2e-3 if arguments.dtype == "float32" else 0.1)
    well = right and eager / mine > NOISE
    print(f"{name:15} eager {eager * 1e3:8.3f} ms  ours {eager / mine:5.2f}x  "
          f"inductor {eager / others[0] if others else math.nan:5.2f}x  {len(used)} of {len(ours.tilepilot_regions)} "
          f"regions{inductors}  error {error:.1e}  {took:4.0f} s  "
          f"{'ok' if well else 'WRONG' if not right else 'SLOWER'}", flush=True)
    for region in ours.tilepilot_regions:
        print(f"    {len(region.operators)} operators: {region.why or f'{region.runs} {region.speedup:.2f}x'}", flush=True)
    return eager / mine, eager / others[0] if others else 1.0, well


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("models", nargs="*", default=list(MAKERS))
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--dtype", default="float32")
    parser.add_argument("--minutes", type=float, default=1.0)
    parser.add_argument("--no-inductor", dest="inductor", action="store_false")
    arguments = parser.parse_args()
    rows = []
    for name in arguments.models:
        torch.compiler.reset()
        rows.append(compared(name, arguments))
    means = [math.exp(statistics.fmean(math.log(row[side]) for row in rows)) for side in (0, 1)]
    print(f"geometric mean of {len(rows)}: ours {means[0]:.3f}x, inductor {means[1]:.3f}x of eager")
    return 0 if all(row[2] for row in rows) else 1


sys.exit(main())
