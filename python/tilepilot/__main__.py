"""`python -m tilepilot [--cpu] SCRIPT [ARGUMENTS...]`: runs a script that imports `tilelang` with this compiler in its
place. With `--cpu` the script's tensors on `cuda` are on the processor."""

import contextlib
import os
import runpy
import sys

from tilepilot.as_tilelang import answer_to_the_name


def main():
    on_processor = sys.argv[1:2] == ["--cpu"]
    if on_processor:
        del sys.argv[1]
    if len(sys.argv) < 2 or sys.argv[1].startswith("-"):
        sys.exit("usage: python -m tilepilot [--cpu] SCRIPT [ARGUMENTS...]")
    script = sys.argv[1]
    if not os.path.isfile(script):
        sys.exit(f"there is no file `{script}`")
    del sys.argv[0]
    sys.path[0] = os.path.dirname(os.path.abspath(script))
    answer_to_the_name()
    with contextlib.ExitStack() as stack:
        if on_processor:
            os.environ["TILEPILOT_TARGET"] = "cpu"  # whatever target the script names
            from tilepilot.on_processor import OnProcessor  # imports torch
            stack.enter_context(OnProcessor())
        runpy.run_path(script, run_name="__main__")


if __name__ == "__main__":
    main()
