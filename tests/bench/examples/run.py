#!/usr/bin/env python3
"""Runs `tilepilot generate` over all examples and prints what came out.

    tests/bench/examples/run.py [--tilepilot PATH] [--keep FOLDER] [EXAMPLE ...]

One row an example: verified or not, eager's and the program's median, their ratio, the attempts, and the seconds
that the whole command took. Below: the geometric mean, the lowest ratio and the longest command, then each of the
figures at the top of this file that was missed. The exit code is 0 only if none was. The geometric mean counts only when all examples run.
"""

import argparse
import json
import math
import pathlib
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[3]

LOWEST_RATIO = 0.95
MEAN_RATIO = 1.4
LONGEST_S = 25.0
# Several passes over memory and no matrix product: one kernel saves all passes but one.
MEMORY_BOUND = {
    "cosine_similarity", "group_norm_swish", "layer_norm_residual", "logsumexp_chain", "rms_norm", "softmax_rows", "swiglu",
}
MEMORY_BOUND_RATIO = 1.8


def generate(tilepilot, model, folder):
    output = folder / (model.stem + "_tilepilot.py")
    start = time.monotonic()
    run = subprocess.run(
        [str(tilepilot), "generate", str(model), "-o", str(output), "--json", "--quiet"], capture_output=True, text=True
    )
    seconds = time.monotonic() - start
    try:
        return json.loads(run.stdout), seconds
    except json.JSONDecodeError:
        lines = (run.stderr or run.stdout).strip().splitlines()
        return {"error": lines[-1] if lines else f"exit code {run.returncode}"}, seconds


def error_of(answer):
    errors = answer.get("errors", [])
    return errors[0]["message"] if errors else answer.get("error", answer.get("ending", ""))


def geometric_mean(ratios):
    return math.exp(sum(map(math.log, ratios)) / len(ratios)) if ratios else 0.0


def missed_figures(rows, all_examples):
    """Sentences. `rows`: example to (ratio, seconds); a ratio of 0 means not verified."""
    missed = []
    for name, (ratio, seconds) in rows.items():
        least = MEMORY_BOUND_RATIO if name in MEMORY_BOUND else LOWEST_RATIO
        if ratio == 0:
            missed.append(f"{name} is not verified")
        elif ratio < least:
            missed.append(f"{name} reaches {ratio:.2f}, wanted {least}")
        if seconds > LONGEST_S:
            missed.append(f"{name} takes {seconds:.1f} s, wanted {LONGEST_S:.0f}")
    mean = geometric_mean([ratio for ratio, _ in rows.values() if ratio > 0])
    if all_examples and mean < MEAN_RATIO:
        missed.append(f"the geometric mean is {mean:.2f}, wanted {MEAN_RATIO}")
    return missed


def row_of(answer):
    """(state, eager us, program us, ratio) of a run's best attempt."""
    if "best_attempt" not in answer:
        attempts = answer.get("attempts", [])
        why = attempts[-1]["verdict"].get("detail", "") if attempts else error_of(answer)
        return "no: " + why, 0.0, 0.0, 0.0
    verdict = answer["attempts"][answer["best_attempt"]]["verdict"]
    eager, program = verdict["eager"]["median_us"], verdict["candidate"]["median_us"]
    return "yes", eager, program, eager / program


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tilepilot", default=ROOT / "tilepilot")
    parser.add_argument("--keep", type=pathlib.Path, help="where the programs stay; default: a temporary folder")
    parser.add_argument("examples", nargs="*", help="names without .py; default: all")
    arguments = parser.parse_args()
    models = sorted((ROOT / "examples").glob("*.py"))
    if arguments.examples:
        models = [model for model in models if model.stem in arguments.examples]
    if not models:
        parser.error("there is no such example")
    rows = {}
    print(f"{'example':24} {'eager us':>10} {'program us':>10} {'ratio':>7} {'attempts':>8} {'seconds':>8}  verified")
    with tempfile.TemporaryDirectory() as temporary:
        folder = arguments.keep or pathlib.Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        for model in models:
            answer, seconds = generate(arguments.tilepilot, model, folder)
            state, eager, program, ratio = row_of(answer)
            attempts = len(answer.get("attempts", []))
            print(f"{model.stem:24} {eager:10.0f} {program:10.0f} {ratio:7.2f} {attempts:8} {seconds:8.1f}  {state}", flush=True)
            rows[model.stem] = (ratio, seconds)
    verified = [ratio for ratio, _ in rows.values() if ratio > 0]
    print(f"{len(verified)} of {len(rows)} verified, geometric mean of those {geometric_mean(verified):.2f}, "
          f"lowest {min(ratio for ratio, _ in rows.values()):.2f}, "
          f"longest command {max(seconds for _, seconds in rows.values()):.1f} s")
    missed = missed_figures(rows, all_examples=not arguments.examples)
    for sentence in missed:
        print("missed:", sentence)
    sys.exit(1 if missed else 0)


if __name__ == "__main__":
    main()
