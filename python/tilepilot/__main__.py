"""`python -m tilepilot [OPTIONS] SCRIPT [ARGUMENTS...]`: runs a script that imports `tilelang` with this compiler in its
place."""

import argparse
import os
import runpy
import sys

from tilepilot.scripts.running import Settings


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
    with Settings(given.cpu, given.bench_time, given.autotune_limit).begin():
        runpy.run_path(given.script, run_name="__main__")


if __name__ == "__main__":
    main()
