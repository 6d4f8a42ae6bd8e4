"""Where Inductor computes what no program does: that it is right, and used only where it is faster."""

import pytest
import torch
from tilepilot.graphs import agreement, inductor, versions
from tilepilot.graphs.backend import reported
from tilepilot.graphs.capture import capture
from torch import nn

from stand_in_author import Scale, compiled_with_reports, same


class Sines(nn.Module):
    def forward(self, x, counts):
        counts.add_(1)
        return x.sin().cos() + 1, nn.functional.dropout(x, 0.5, True)


@pytest.fixture
def with_inductor(author, monkeypatch):
    """The stand-in for the author, Inductor itself, and times that a test chooses by the number of sides."""
    monkeypatch.setattr(inductor, "compiled", INDUCTOR)

    def times(*found):
        monkeypatch.setattr(versions, "seconds_of_calls", lambda device, *sides: found[:len(sides)])

    return times


INDUCTOR = inductor.compiled


def test_inductor_computes_what_no_program_does(author, with_inductor, x):
    """With eager's random numbers, and what is written to arguments."""
    with_inductor(2.0, 1.0)
    author.answers(accepts="False")
    compiled, counts = torch.compile(Sines(), backend="tilepilot"), torch.zeros(3)
    with reported() as reports, torch.no_grad():
        torch.manual_seed(3)
        found = compiled(x, counts)
    assert [(report.runs, report.speedup) for report in reports if report.runs != "torch"] == [("inductor", 2.0)]
    torch.manual_seed(3)
    expected = Sines()(x, torch.zeros(3))
    torch.testing.assert_close(found, expected)
    assert counts.tolist() == [1, 1, 1]


def test_programs_run_inside_of_inductors_code(author, with_inductor, x):
    with_inductor(4.0, 3.0, 2.0, 1.0)  # eager, with programs, Inductor, Inductor with programs

    class Around(nn.Module):
        def __init__(self):
            super().__init__()
            self.scale = Scale()

        def forward(self, x):
            return self.scale(x) + torch.rand_like(x) * 0

    model = Around()
    compiled, reports = compiled_with_reports(model, x)
    assert [report.runs for report in reports if report.runs != "torch"] == ["program", "inductor"]
    assert same(compiled, model, x) == 1


def test_one_lucky_measurement_of_a_program_does_not_count(author, with_inductor, x, monkeypatch):
    with_inductor()
    rounds = iter([(2.0, 1.05, 1.0), (2.0, 1.06, 1.0), (2.0, 1.2, 1.2), (2.0, 1.05, 1.04)])  # eager, program, Inductor
    monkeypatch.setattr(versions, "seconds_of_calls", lambda *_: next(rounds))
    _, reports = compiled_with_reports(Scale(), x)
    assert [report.runs for report in reports] == ["torch", "inductor"]


def test_code_of_inductor_that_is_slower_or_differs_is_not_used(author, with_inductor, x, monkeypatch):
    author.answers(accepts="False")
    with_inductor(1.0, 2.0)
    _, reports = compiled_with_reports(Sines(), x, torch.zeros(3))
    assert {report.runs for report in reports} == {"torch"}
    torch._dynamo.reset()
    with_inductor(2.0, 1.0)

    def wrong(*arguments, **named):
        made = INDUCTOR(*arguments, **named)
        return lambda *given: tuple(result * 1.01 for result in made(*given))

    monkeypatch.setattr(inductor, "compiled", wrong)
    _, reports = compiled_with_reports(Sines(), x, torch.zeros(3))
    assert {report.runs for report in reports} == {"torch"}


def test_code_of_inductor_that_fails_is_not_used(author, with_inductor, x, monkeypatch):
    def failing(*_):
        raise RuntimeError("out of memory")

    author.answers(accepts="False")
    with_inductor(2.0, 1.0)
    monkeypatch.setattr(inductor, "compiled", lambda *_, **__: failing)
    compiled, reports = compiled_with_reports(Sines(), x, torch.zeros(3))
    assert {report.runs for report in reports} == {"torch"}


def test_truths_contain_what_is_written_to_arguments():
    values = [torch.ones(8), torch.zeros(3)]
    found = versions._truths(capture(torch.fx.symbolic_trace(Sines()), values), values)
    assert found[-1].dtype is torch.float64 and found[-1].tolist() == [1, 1, 1]
    assert values[1].tolist() == [0, 0, 0]


def test_what_inductor_warns_of_is_not_the_users(author, with_inductor, recwarn):
    """It knows no complex numbers, which nobody asked it to compute."""
    author.answers(accepts="False")
    x = torch.randn(8, 64)
    model = nn.Sequential(nn.Linear(64, 64))
    model.forward = lambda x: torch.fft.fft(model[0](x)).abs()
    same(torch.compile(model, backend="tilepilot"), model, x)
    assert not any("nductor" in str(warning.message) for warning in recwarn)


def test_inductor_may_be_left_out(author, with_inductor, x):
    author.answers(accepts="False")
    with_inductor(2.0, 1.0)
    _, reports = compiled_with_reports(Sines(), x, torch.zeros(3), options={"inductor": False})
    assert {report.runs for report in reports} == {"torch"}


def test_sixteen_bits_are_held_against_the_truth():
    """What differs from eager's results by more than a rounding agrees if it is no further from the truth than these."""
    truth = torch.linspace(1, 2, 64, dtype=torch.float64)
    eager, other, wrong = truth.float() * 1.1, truth.float() * 0.95, truth.float() * 0.7
    with pytest.raises(agreement.NotUsed):
        agreement.check_agreement("it", [other], [eager])
    agreement.check_agreement("it", [other], [eager], lambda: [truth])
    with pytest.raises(agreement.NotUsed):
        agreement.check_agreement("it", [wrong], [eager], lambda: [truth])


def test_results_without_elements_agree():
    agreement.check_agreement("code", [torch.zeros(0, 4)], [torch.zeros(0, 4)])
    with pytest.raises(agreement.NotUsed):
        agreement.check_agreement("code", [torch.zeros(0, 3)], [torch.zeros(0, 4)])
