"""`python -m tilepilot [OPTIONS] SCRIPT [ARGUMENTS...]`: runs a script that imports `tilelang` with this compiler in its
place."""

import argparse
import contextlib
import os
import runpy
import sys

from tilepilot import _core
from tilepilot.as_tilelang import answer_to_the_name
from tilepilot.scripts import limits


def _arguments():
    parser = argparse.ArgumentParser(prog="python -m tilepilot", description=__doc__.partition(": ")[2])
    parser.add_argument("--cpu", action="store_true", help="the script's tensors on `cuda` are on the processor")
    parser.add_argument("--bench-time", type=float, metavar="MS", help="of one benchmark; it makes at least one call")
    parser.add_argument("--autotune-limit", type=int, metavar="N", help="configurations that one tuning tries")
    parser.add_argument("script")
    parser.add_argument("arguments", nargs=argparse.REMAINDER)
    given = parser.parse_args()
    if not os.path.isfile(given.script):
        sys.exit(f"there is no file `{given.script}`")
    return given


def main():
    given = _arguments()
    sys.argv = [given.script, *given.arguments]
    sys.path[0] = os.path.dirname(os.path.abspath(given.script))
    answer_to_the_name()
    if given.bench_time is not None:
        limits.bench_ms = given.bench_time
    if given.autotune_limit is not None:
        limits.autotune_limit = given.autotune_limit
    _core.let_gradients_end()  # scripts call kernels inside functions of torch.autograd, and beside them
    with contextlib.ExitStack() as stack:
        if given.cpu:
            os.environ["TILEPILOT_TARGET"] = "cpu"  # whatever target the script names
            from tilepilot.on_processor import OnProcessor  # imports torch
            stack.enter_context(OnProcessor())
        runpy.run_path(given.script, run_name="__main__")


if __name__ == "__main__":
    main()
