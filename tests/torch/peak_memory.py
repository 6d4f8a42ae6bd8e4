"""How much memory an export takes beyond what PyTorch itself does.

    peak_memory.py EXPORTER MODEL.py OUTDIR

Prints {"grown": BYTES}.
"""

import argparse
import json
import resource
import sys

from export_models import load_exporter


def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


if __name__ == "__main__":
    exporter = load_exporter(sys.argv[1])
    before = peak()
    exporter.export_reference(
        argparse.Namespace(model=sys.argv[2], out=sys.argv[3], seed=42, dtype="model", scale="", graph_only=False))
    print(json.dumps({"grown": peak() - before}))
