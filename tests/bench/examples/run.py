#!/usr/bin/env python3
"""Runs `tilepilot generate` over all examples and prints what came out.

    tests/bench/examples/run.py [--tilepilot PATH] [--keep FOLDER] [EXAMPLE ...]

One row an example: verified or not, eager's and the program's median, their ratio, the attempts, and the seconds
that the whole command took. Below: the geometric mean, the lowest ratio and the longest command.
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


def row_of(answer):
    """(state, eager us, program us, ratio) of a run's best attempt."""
    if "best_attempt" not in answer:
        attempts = answer.get("attempts", [])
        why = attempts[-1]["verdict"].get("detail", "") if attempts else str(answer.get("error", answer.get("failure", "")))
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
    ratios, longest = [], 0.0
    print(f"{'example':24} {'eager us':>10} {'program us':>10} {'ratio':>7} {'attempts':>8} {'seconds':>8}  verified")
    with tempfile.TemporaryDirectory() as temporary:
        folder = arguments.keep or pathlib.Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        for model in models:
            answer, seconds = generate(arguments.tilepilot, model, folder)
            state, eager, program, ratio = row_of(answer)
            attempts = len(answer.get("attempts", []))
            print(f"{model.stem:24} {eager:10.0f} {program:10.0f} {ratio:7.2f} {attempts:8} {seconds:8.1f}  {state}", flush=True)
            ratios.append(ratio)
            longest = max(longest, seconds)
    verified = [ratio for ratio in ratios if ratio > 0]
    mean = math.exp(sum(map(math.log, verified)) / len(verified)) if verified else 0.0
    print(f"{len(verified)} of {len(ratios)} verified, geometric mean of those {mean:.2f}, lowest {min(ratios):.2f}, "
          f"longest command {longest:.1f} s")
    sys.exit(0 if len(verified) == len(ratios) else 1)


if __name__ == "__main__":
    main()
