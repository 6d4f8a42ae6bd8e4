"""Programs of `generate` as modules: what `ModelNew` does where it was verified, and elsewhere."""

import copy
import hashlib
import io
import json
import pathlib
import pickle
import subprocess
import warnings

import pytest
import tilepilot
import torch
from torch import nn

MODEL = """
import torch
import torch.nn as nn

class Model(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.weight = nn.Parameter(torch.rand(size))
        self.calls = 0

    def forward(self, x):
        self.calls += 1
        return x * self.weight * 2

def get_inputs():
    return [torch.randn(16, 32)]

def get_init_inputs():
    return [32]
"""

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
                Y[bx * 4 + i, j] = X[bx * 4 + i, j] * W[j] * 2

    return scale_kernel


class ModelNew(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.weight = nn.Parameter(torch.rand(size))
        self.scale = scale(16, size)
        self.kernel_calls = 0

    def forward(self, x):
        self.kernel_calls += 1
        return self.scale(x, self.weight)
"""


def digest(text):
    return hashlib.sha256(text.encode()).hexdigest()


def written(folder, program=PROGRAM, model=MODEL, **changes):
    """A program with its model and a certificate beside it."""
    (folder / "model.py").write_text(model)
    (folder / "fast.py").write_text(program)
    facts = {
        "program": {"file": "fast.py", "sha256": digest(program)},
        "model": {"file": "model.py", "sha256": digest(model)},
        "reference": {"inputs": [{"dtype": "float32", "shape": [16, 32]}]},
        "verdict": {"target": "cpu"},
    }
    (folder / "fast.cert.json").write_text(json.dumps({**facts, **changes}))
    return folder / "fast.py"


@pytest.fixture
def program(tmp_path):
    return written(tmp_path)


@pytest.fixture
def model(program):
    return tilepilot.load(program).ModelNew(32)


@pytest.fixture
def x():
    return torch.randn(16, 32)


def expected(model, x):
    return x * model.weight.detach() * 2


def falls_back(match):
    return pytest.warns(tilepilot.TilePilotWarning, match=match)


def test_it_is_an_ordinary_module(model, x):
    assert isinstance(model, nn.Module) and type(model).__name__ == "ModelNew"
    assert list(model.state_dict()) == ["weight"]
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("error")
        torch.testing.assert_close(model(x), expected(model, x))
        assert model.kernel_calls == 1
        model.load_state_dict({"weight": torch.ones(32)})
        torch.testing.assert_close(model(x), x * 2)
        torch.testing.assert_close(model.eval()(x), x * 2)
        assert model.kernel_calls == 3


def test_what_it_was_not_verified_for_runs_the_reference_and_says_so_once(model):
    for rows in (8, 4):
        x = torch.randn(rows, 32)
        with torch.no_grad(), warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            torch.testing.assert_close(model(x), expected(model, x))
        assert len(told) == (rows == 8)
        assert all(warning.filename == __file__ for warning in told)
    assert model.kernel_calls == 0


@pytest.mark.parametrize("change, match", [
    (lambda x: x.double(), "float64"),
    (lambda x: torch.randn(32, 16).t(), "not contiguous"),
])
def test_other_inputs_run_the_reference(model, x, change, match):
    given = change(x)
    with torch.no_grad(), falls_back(match):
        torch.testing.assert_close(model(given), expected(model, given))
    assert model.kernel_calls == 0


def test_autocast_runs_the_reference(model, x):
    with torch.no_grad(), torch.autocast("cpu", dtype=torch.bfloat16), falls_back("autocast is on"):
        model(x)
    assert model.kernel_calls == 0


def test_names_of_inputs_run_the_reference(model, x):
    with torch.no_grad(), falls_back("given by name"):
        torch.testing.assert_close(model(x=x), expected(model, x))


def test_strict_raises(program):
    model = tilepilot.load(program, strict=True).ModelNew(32)
    with torch.no_grad(), pytest.raises(tilepilot.TilePilotError, match=r"\(8, 32\), and not float32 \(16, 32\)"):
        model(torch.randn(8, 32))


def test_gradients_are_those_of_the_reference(model, x):
    x.requires_grad_()
    model(x).square().sum().backward()
    assert model.kernel_calls == 1
    got = x.grad, model.weight.grad
    weight = model.weight.detach().clone().requires_grad_()
    given = x.detach().clone().requires_grad_()
    (given * weight * 2).square().sum().backward()
    torch.testing.assert_close(got, (given.grad, weight.grad))


def test_gradients_of_gradients_are_those_of_the_reference(model, x):
    def penalty(call, weight):
        given = x.clone().requires_grad_()
        outputs = call(given * weight)  # the input depends on a weight, too
        slope, = torch.autograd.grad(outputs.square().sum(), given, create_graph=True)
        return torch.autograd.grad(slope.square().sum() + outputs.sum(), [given, weight])

    for got, wanted in zip(penalty(model, model.weight), penalty(lambda given: given * model.weight * 2, model.weight)):
        torch.testing.assert_close(got, wanted)
    assert model.kernel_calls == 1


def test_transformations_of_functions_run_the_reference(model, x):
    weights, others = dict(model.named_parameters()), torch.randn(3, 16, 32)
    with falls_back("transformation of torch.func"):
        found = torch.func.grad(lambda given: torch.func.functional_call(model, given, (x,)).sum())(weights)
    torch.testing.assert_close(found["weight"], x.sum(0) * 2)
    with torch.no_grad():
        torch.testing.assert_close(torch.vmap(model)(others), others * model.weight * 2)
        _, tangent = torch.func.jvp(model, (x,), (x,))
        torch.testing.assert_close(tangent, expected(model, x))
        with torch.autograd.forward_ad.dual_level():
            dual = model(torch.autograd.forward_ad.make_dual(x, x))
            torch.testing.assert_close(torch.autograd.forward_ad.unpack_dual(dual).tangent, expected(model, x))
    assert model.kernel_calls == 0


def test_a_trace_contains_the_kernel(model, x):
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # traces are deprecated, and warn of decisions
        traced = torch.jit.trace(model, x)
        torch.testing.assert_close(traced(x + 1), expected(model, x + 1))


@pytest.mark.parametrize("change, match", [
    (lambda model: model.half(), "float16, and not float32"),
    (lambda model: setattr(model, "weight", nn.Parameter(torch.rand(64)[::2])), "not contiguous"),
])
def test_other_weights_run_the_reference(model, x, change, match):
    change(model)
    with falls_back(match), torch.no_grad():
        torch.testing.assert_close(model(x), expected(model, x))
    model(x).sum().backward()
    torch.testing.assert_close(model.weight.grad.float(), x.sum(0) * 2, rtol=1e-2, atol=1e-2)


@pytest.mark.parametrize("change", [
    lambda model: model.half(), lambda model: model.double(),
    lambda model: setattr(model, "weight", nn.Parameter(torch.rand(64)[::2]))])
def test_torch_compiles_a_model_with_other_weights(model, x, change):
    change(model)
    compiled = torch.compile(model, backend="eager", fullgraph=True)
    with falls_back("its weight `weight`"), torch.no_grad():
        torch.testing.assert_close(compiled(x), expected(model, x))
    with torch.no_grad():
        torch.testing.assert_close(torch.export.export(model, (x,)).module()(x), expected(model, x))


@pytest.mark.parametrize("change", [lambda x: x[:3], lambda x: x.double(), lambda x: x.t().contiguous().t()])
def test_torch_compiles_the_reference_into_the_graph_and_says_so_once(model, x, change, recwarn):
    compiled = torch.compile(model, backend="eager", fullgraph=True)
    for _ in range(2):
        torch.testing.assert_close(compiled(change(x)), expected(model, change(x)))
        torch.compiler.reset()
    told = [warning for warning in recwarn if warning.category is tilepilot.TilePilotWarning]
    assert ["was not verified for this call" in str(each.message) for each in told] == [True]
    assert told[0].filename == __file__


def test_torch_compiles_many_programs(tmp_path, x):
    torch.compiler.reset()
    for number in range(10):
        folder = tmp_path / str(number)
        folder.mkdir()
        model = tilepilot.load(written(folder)).ModelNew(32)
        compiled = torch.compile(model, backend="eager", fullgraph=True)
        with torch.no_grad():
            torch.testing.assert_close(compiled(x), expected(model, x))


def test_a_weight_may_be_computed(model, x):
    class Adapted(nn.Module):
        def __init__(self):
            super().__init__()
            self.delta = nn.Parameter(torch.ones(32))

        def forward(self, weight):
            return weight + self.delta

    weight = model.weight.detach().clone()
    nn.utils.parametrize.register_parametrization(model, "weight", Adapted())
    y = model(x)
    y.sum().backward()
    torch.testing.assert_close(y.detach(), x * (weight + 1) * 2)
    for parameter in model.parameters():
        torch.testing.assert_close(parameter.grad, x.sum(0) * 2)
    assert model.kernel_calls == 1


def test_a_training_step_changes_the_weights(model, x):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    losses = []
    for _ in range(5):
        optimizer.zero_grad()
        loss = (model(x) - x).square().mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses == sorted(losses, reverse=True) and losses[-1] < losses[0]


def test_copies_and_pickles(model, x, program):
    text = pickle.dumps(model)
    buffer = io.BytesIO()
    torch.save(model, buffer)
    buffer.seek(0)
    copies = [copy.deepcopy(model), pickle.loads(text), torch.load(buffer, weights_only=False)]
    with torch.no_grad():
        for each in copies:
            assert torch.equal(each(x), model(x))
            each.weight.zero_()
            assert not torch.equal(each(x), model(x))  # weights of its own


def test_a_copy_of_a_derived_class_is_one_of_that_class(program, x):
    class Shifted(tilepilot.load(program).ModelNew):
        def forward(self, x):
            return super().forward(x) + 1

    model = Shifted(32)
    with torch.no_grad():
        assert torch.equal(copy.deepcopy(model)(x), model(x))
        torch.testing.assert_close(model(x), expected(model, x) + 1)


def test_a_pickle_is_complete(model, x, program, python, tmp_path):
    with torch.no_grad():
        torch.save((pickle.dumps(model), x, model(x)), tmp_path / "saved.pt")
    for file in tmp_path.glob("*.py"):
        file.unlink()  # another machine
    run = python("""
import pickle, sys, torch
text, x, y = torch.load(sys.argv[1], weights_only=False)
model = pickle.loads(text)
with torch.no_grad():
    print(torch.equal(model(x), y), torch.equal(model(x[:4]), y[:4]))
""", tmp_path / "saved.pt")
    assert run.stdout == "True True\n", run.stderr


def test_torch_compiles_and_exports_it(model, x):
    with torch.no_grad():
        want = expected(model, x)
        torch.testing.assert_close(torch.compile(model, fullgraph=True)(x), want)
        exported = torch.export.export(model, (x,))
        assert any("scale_kernel" in str(node.target) for node in exported.graph.nodes)
        torch.testing.assert_close(exported.module()(x), want)


def test_a_model_whose_layers_differ_by_mode(tmp_path):
    text = MODEL.replace("self.calls = 0", "self.drop = nn.Dropout(0.0)\n        self.calls = 0")
    program = PROGRAM.replace("self.kernel_calls = 0", "self.drop = nn.Dropout(0.0)\n        self.kernel_calls = 0")
    model = tilepilot.load(written(tmp_path, program, text)).ModelNew(32)
    x = torch.randn(16, 32)
    with torch.no_grad():
        model(x)
        assert model.kernel_calls == 1
        with falls_back("evaluation mode"):
            torch.testing.assert_close(model.eval()(x), expected(model, x))
        assert model.kernel_calls == 1


@pytest.mark.parametrize("drops", [
    ("self.drop = nn.Dropout(0.0)", "self.drop(x)"),
    ("pass", "nn.functional.dropout(x, 0.0, self.training)"),
])
def test_a_program_without_the_layers_that_differ_by_mode(tmp_path, x, drops):
    layer, call = drops
    model = MODEL.replace("self.calls = 0", layer).replace("self.calls += 1", f"x = {call}")
    made = tilepilot.load(written(tmp_path, model=model)).ModelNew(32)
    with torch.no_grad():
        made(x)
        with falls_back("evaluation mode"):
            made.eval()(x)
    assert made.kernel_calls == 1


def test_a_reference_whose_weights_are_others_cannot_stand_in(tmp_path):
    program = PROGRAM.replace("self.weight = nn.Parameter(torch.rand(size))",
                              "self.packed = nn.Parameter(torch.rand(size))").replace("self.weight)", "self.packed)")
    model = tilepilot.load(written(tmp_path, program)).ModelNew(32)
    with torch.no_grad(), pytest.raises(tilepilot.TilePilotError, match="keeps no weight like `weight`"), \
            warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model(torch.randn(8, 32))


def test_certificates_that_do_not_fit(tmp_path):
    path = written(tmp_path)
    path.write_text(PROGRAM + "\n# changed\n")
    with falls_back("has no certificate beside it that is for"):
        tilepilot.load(path)
    path = written(tmp_path)
    (tmp_path / "model.py").write_text(MODEL + "\n# changed\n")
    with falls_back("has no certificate beside it that is for"):
        tilepilot.load(path)
    path = written(tmp_path, verdict={"target": "cuda:sm_90a"})
    with torch.no_grad(), falls_back("was verified on `cuda:sm_90a`"):
        tilepilot.load(path).ModelNew(32)(torch.randn(16, 32))


def test_without_a_certificate_the_model_says_what_is_verified(tmp_path):
    path = written(tmp_path)
    (tmp_path / "fast.cert.json").unlink()
    with falls_back("has no certificate"):
        model = tilepilot.load(path).ModelNew(32)
    with torch.no_grad():
        model(torch.randn(16, 32))
        with pytest.raises(tilepilot.ArgumentError, match="must have shape"):
            model(torch.randn(4, 32))
    with pytest.raises(tilepilot.TilePilotError, match="has no certificate"):
        tilepilot.load(path, strict=True)
    model = tilepilot.load(path, reference=tmp_path / "model.py").ModelNew(32)
    with torch.no_grad():
        model(torch.randn(16, 32))
        assert model.kernel_calls == 1
        with falls_back("not verified for this call"):
            model(torch.randn(4, 32))


def test_files_that_are_no_programs(tmp_path):
    (tmp_path / "none.py").write_text("x = 1\n")
    (tmp_path / "broken.py").write_text("class ModelNew(:\n")
    (tmp_path / "bytes.py").write_bytes(b"\xff\xfe\x00")
    for name, match in (("none.py", "defines no `class ModelNew"), ("broken.py", "is no Python program"),
                        ("bytes.py", "cannot read"), ("absent.py", "cannot read")):
        with pytest.raises(ImportError, match=match):
            tilepilot.load(tmp_path / name)


def test_what_generate_writes(tmp_path):
    command = pathlib.Path(tilepilot.__file__).parents[2] / "tilepilot"
    if not command.exists() or not command.with_name("tilepilot-worker").exists():
        pytest.skip("tilepilot and its worker are not built here")
    (tmp_path / "model.py").write_text(MODEL)
    output = tmp_path / "fast.py"
    run = subprocess.run([command, "generate", tmp_path / "model.py", "-o", output, "--attempts", "2", "--no-corpus",
                          "--minutes", "1"], capture_output=True, text=True, timeout=300)
    assert output.exists(), run.stderr
    model = tilepilot.load(output).ModelNew(32)
    x = torch.randn(16, 32)
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("error")
        torch.testing.assert_close(model(x), expected(model, x))
    with torch.no_grad(), falls_back("not verified for this call"):
        torch.testing.assert_close(model(x[:3]), expected(model, x[:3]))
