"""Exports several models in one process: starting PyTorch takes longer than most of them.

    export_models.py EXPORTER [MODEL.py DTYPE OUTDIR]...
    export_models.py --answers EXPORTER [MODEL.py DTYPE OUTDIR]...
    export_models.py --scaled 1/4 EXPORTER [MODEL.py DTYPE OUTDIR]...

Writes OUTDIR/reference for each, and fails with the first that fails; or writes OUTDIR and prints what the exporter
answers, with its exit code as "code", a line each; `--scaled` does the latter with smaller sizes.
"""

import argparse
import contextlib
import functools
import importlib.util
import json
import os
import sys


def load_exporter(path):
    spec = importlib.util.spec_from_file_location("exporter", path)
    exporter = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(exporter)
    exporter.import_torch()
    return exporter


def export(exporter, model_path, dtype, out):
    os.makedirs(out, exist_ok=True)
    reference = os.path.join(out, "reference")
    options = argparse.Namespace(model=model_path, out=reference, seed=42, dtype=dtype, scale="", graph_only=False)
    exporter.export_reference(options)


def answer(exporter, model_path, dtype, out, scale=""):
    options = argparse.Namespace(model=model_path, out=out, seed=42, dtype=dtype, scale=scale, graph_only=False,
                                 time_compile=False)
    with contextlib.redirect_stdout(sys.stderr):
        code, said = exporter.answer_to(options)
    print(json.dumps({**said, "code": code}), flush=True)


if __name__ == "__main__":
    arguments = sys.argv[1:]
    task = export
    if arguments[0] == "--answers":
        task = answer
        arguments.pop(0)
    elif arguments[0] == "--scaled":
        task = functools.partial(answer, scale=arguments[1])
        del arguments[:2]
    exporter = load_exporter(arguments.pop(0))
    for job in range(0, len(arguments), 3):
        task(exporter, *arguments[job : job + 3])
