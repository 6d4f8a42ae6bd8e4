"""Builds a wheel of this checkout, installs it in a fresh virtual environment beside the torch of this interpreter, and
calls a kernel there. usage: wheel.py [COMPILER_LIBRARY], the compiler of a build with TILEPILOT_PACKAGE, which saves
minutes."""

import importlib.util
import os
import pathlib
import subprocess
import sys
import tempfile
import venv

ROOT = pathlib.Path(__file__).parents[2]
LARGEST = 40 << 20  # bytes
PROGRAM = """
import tilepilot, torch
import tilepilot.tilelang.language as T
from tilepilot import tilelang

@T.prim_func
def double(A: T.Tensor((8, 8), "float32"), B: T.Tensor((8, 8), "float32")):
    with T.Kernel(1, threads=32):
        for i, j in T.Parallel(8, 8):
            B[i, j] = A[i, j] * 2

x = torch.randn(8, 8)
assert torch.equal(tilelang.compile(double, out_idx=-1)(x), x * 2)
print(tilepilot.__file__)
"""


def skip(reason):
    print(f"{__file__}:1: Skipped\n{reason}")
    sys.exit(0)


def build(folder, library):
    command = [sys.executable, "-m", "pip", "wheel", "--disable-pip-version-check", "--no-deps", "-w", folder, str(ROOT),
               "-C", f"build-dir={folder}/build"]
    if library:
        command += ["-C", f"cmake.define.TILEPILOT_COMPILER_LIBRARY={os.path.abspath(library)}"]
    run = subprocess.run(command, capture_output=True, text=True)
    if run.returncode != 0:
        message = run.stdout + run.stderr
        if "No matching distribution found for scikit-build-core" in message or "Temporary failure in name" in message:
            skip("no package registry can be reached")
        sys.exit(message)
    wheels = list(pathlib.Path(folder).glob("tilepilot-*.whl"))
    assert len(wheels) == 1, wheels
    return wheels[0]


def main():
    if importlib.util.find_spec("torch") is None:
        skip("torch is not installed: `scripts/setup --tests` installs what the tests need")
    with tempfile.TemporaryDirectory() as folder:
        wheel = build(folder, sys.argv[1] if len(sys.argv) > 1 else "")
        size = wheel.stat().st_size
        assert size <= LARGEST, f"{wheel.name} has {size} bytes"
        environment = pathlib.Path(folder) / "environment"
        venv.create(environment, with_pip=True)
        python = environment / "bin" / "python"
        subprocess.run([python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps",
                        "--no-index", wheel], check=True)
        program = pathlib.Path(folder) / "program.py"
        program.write_text(PROGRAM)
        # Torch is the one thing that is borrowed: it is a download of a gigabyte.
        torch_folder = pathlib.Path(importlib.util.find_spec("torch").origin).parents[1]
        run = subprocess.run([python, program], capture_output=True, text=True, cwd=folder,
                             env={**os.environ, "PYTHONPATH": str(torch_folder)})
        assert run.returncode == 0 and run.stdout.startswith(str(environment)), run.stdout + run.stderr
        print(f"{wheel.name}: {size / 1e6:.1f} MB\n[  PASSED  ] 1 tests.")


if __name__ == "__main__":
    main()
