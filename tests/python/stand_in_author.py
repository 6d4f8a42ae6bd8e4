"""A file that stands in for the command, which answers at once with a program of the test's own; what these programs
compute is told by what they print."""

import json
import stat
import sys

import torch
from tilepilot.graphs import agreement, inductor
from tilepilot.graphs.backend import reported
from torch import nn

# Takes the model that it is given and answers with a program that computes `x * w * 2`, if it is such a model; it says
# that the program is as fast as SPEEDUP. Its calls are counted in the file beside it.
COMMAND = '''#!{python}
import hashlib, json, pathlib, re, sys
here = pathlib.Path(__file__).parent
text = pathlib.Path("model.py").read_text()
with open(here / "asked.txt", "a") as file:
    file.write(json.dumps([sys.argv[1:], text]) + "\\n")
sizes = re.search(r"torch.randn\\(\\((\\d+), (\\d+)\\)", text[text.index("def get_inputs"):])
if not ({accepts}) or sizes is None:
    print(json.dumps(dict(ok=False, reason="the author sees nothing", ending="{ending}", attempts=[])))
    sys.exit(1)
M, N = map(int, sizes.groups())
program = (here / "program.py").read_text().replace("ROWS", str(M)).replace("COLUMNS", str(N))
pathlib.Path("fast.py").write_text(program)
digest = lambda text: hashlib.sha256(text.encode()).hexdigest()
pathlib.Path("fast.cert.json").write_text(json.dumps(dict(
    program=dict(file="fast.py", sha256=digest(program)), model=dict(file="model.py", sha256=digest(text)),
    reference=dict(inputs=[dict(dtype="float32", shape=[M, N])]), verdict=dict(target="cpu"))))
print(json.dumps(dict(ok=True, verdict=dict(outcome="verified", speedup={speedup}, speedup_interval=[1.5, 2.5]))))
'''

# The reference takes three passes over memory, this takes one.
PROGRAM = """
import torch
import torch.nn as nn
import tilelang
import tilelang.language as T


@tilelang.jit(out_idx=[-1])
def scale(M, N):
    @T.prim_func
    def scale_kernel(X: T.Tensor((M, N), "float32"), W: T.Tensor((N,), "float32"), Y: T.Tensor((M, N), "float32")):
        with T.Kernel(T.ceildiv(M, 4), threads=32) as bx:
            for i, j in T.Parallel(4, N):
                if bx * 4 + i < M:
                    Y[bx * 4 + i, j] = X[bx * 4 + i, j] * W[j] * 2

    return scale_kernel


class ModelNew(nn.Module):
    calls = 0

    def __init__(self):
        super().__init__()
        self.w0 = nn.Parameter(torch.rand(COLUMNS))
        self.scale = scale(ROWS, COLUMNS)

    def forward(self, x):
        ModelNew.calls += 1
        return self.scale(x, self.w0)
"""


class Scale(nn.Module):
    def __init__(self, size=2048):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(size))

    def forward(self, x):
        for _ in range(6):  # slow enough that the kernel gains
            x = x.abs() * x.sign()
        return x * self.weight * 2


class Author:
    """The stand-in for the command."""

    def __init__(self, folder):
        self.folder = folder
        self.file = folder / "command.py"
        (folder / "program.py").write_text(PROGRAM)
        self.answers()

    def answers(self, accepts="True", speedup=2.0, ending="time spent"):
        text = COMMAND.format(python=sys.executable, accepts=accepts, speedup=speedup, ending=ending)
        self.file.write_text(text)
        self.file.chmod(self.file.stat().st_mode | stat.S_IXUSR)

    def asked(self):
        try:
            return [json.loads(line) for line in (self.folder / "asked.txt").read_text().splitlines()]
        except FileNotFoundError:
            return []


def program_calls():
    return sum(module.ModelNew.calls for name, module in list(sys.modules.items())
               if name.startswith("tilepilot.loaded.fast"))


def no_inductor(*_, **__):
    """Most tests are about programs, and Inductor would be faster than some."""
    raise agreement.NotUsed("it is left out")


def same(compiled, model, *inputs):
    """The number of the program's calls in a call that agrees with the model's."""
    before = program_calls()
    with torch.no_grad():
        torch.testing.assert_close(compiled(*inputs), model(*inputs))
    return program_calls() - before


def compiled_with_reports(model, *inputs, **options):
    compiled = torch.compile(model, backend="tilepilot", **options)
    with reported() as reports, torch.no_grad():
        compiled(*inputs)
    return compiled, reports


def installed(folder, monkeypatch):
    """The stand-in, for one test."""
    torch._dynamo.reset()
    monkeypatch.setenv("TILEPILOT_CACHE", str(folder / "cache"))
    for name in [name for name in sys.modules if name.startswith("tilepilot.loaded.fast")]:
        del sys.modules[name]
    monkeypatch.setattr(inductor, "compiled", no_inductor)
    made = Author(folder)
    monkeypatch.setenv("TILEPILOT_COMMAND", str(made.file))
    return made
