"""What Dynamo writes into graphs for compilers, and what eager would have done there."""

import torch
from stand_in_author import compiled_with_reports, program_calls
from torch import nn
from torch.utils.checkpoint import checkpoint


def test_a_checkpoint_draws_the_numbers_of_its_forward_again(author):
    class Checkpointed(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = nn.Sequential(nn.Linear(64, 64), nn.Dropout(0.5))

        def forward(self, x):
            for _ in range(2):
                x = checkpoint(self.inner, x, use_reentrant=False)
            return x

    model, x = Checkpointed(), torch.randn(8, 64)
    gradients = []
    for call in (model, torch.compile(model, backend="tilepilot")):
        torch.manual_seed(1)
        gradients.append(torch.autograd.grad(call(x).sum(), list(model.parameters())))
    torch.testing.assert_close(*gradients)


def test_reals_that_are_passed_as_tensors_are_constants_of_a_version(author, x):
    class Scale(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(torch.randn(2048))

        def forward(self, x, factor):
            for _ in range(6):
                x = x.abs() * x.sign()
            return x * self.weight * factor

    model = Scale()
    compiled, _ = compiled_with_reports(model, x, 1.5)  # which Dynamo takes for a constant
    before = program_calls()
    for factor in (2.0, 3.0, 2.0):
        with torch.no_grad():
            # The program of the stand-in is for 2.
            torch.testing.assert_close(compiled(x, factor), model(x, factor))
    assert program_calls() > before
