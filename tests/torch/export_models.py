"""Exports several models in one process: starting PyTorch takes longer than most of them.

    export_models.py EXPORTER [MODEL.py DTYPE OUTDIR]...

Writes OUTDIR/reference for each.
"""

import argparse
import importlib.util
import os
import sys

import torch


def load_exporter(path):
    spec = importlib.util.spec_from_file_location("exporter", path)
    exporter = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(exporter)
    exporter.torch = torch
    return exporter


def export(exporter, model_path, dtype, out):
    os.makedirs(out, exist_ok=True)
    reference = os.path.join(out, "reference")
    exporter.export_reference(argparse.Namespace(model=model_path, out=reference, seed=42, dtype=dtype))


if __name__ == "__main__":
    exporter = load_exporter(sys.argv[1])
    for job in range(2, len(sys.argv), 3):
        export(exporter, *sys.argv[job : job + 3])
