"""Whether another computation of a graph gives what eager gives."""

import torch


class NotUsed(Exception):
    """A computation that stays aside, and why."""


def check_agreement(what, found, expected, truths=None):
    """Raises NotUsed unless results agree.

    They agree if they differ little from eager's, or, where `truths` gives results in double precision, if they differ
    from these by no more than twice what eager's do: many layers of 16-bit numbers are that far from the truth."""
    if len(found) != len(expected):
        raise NotUsed(f"{what} gives {len(found)} outputs, and not {len(expected)}")
    computed = None
    for position, (got, want) in enumerate(zip(found, expected)):
        if not isinstance(want, torch.Tensor):
            if got != want:
                raise NotUsed(f"output {position} of {what} differs from eager's")
            continue
        if got.shape != want.shape or got.dtype != want.dtype or got.device != want.device:
            raise NotUsed(f"output {position} of {what} is {got.dtype} {tuple(got.shape)} on {got.device}, and not "
                          f"{want.dtype} {tuple(want.shape)} on {want.device}")
        if _is_close(got, want):
            continue
        if want.dtype.is_floating_point and truths is not None:
            computed = computed if computed is not None else truths()
            if computed and _is_no_less_exact(got, want, computed[position]):
                continue
        raise NotUsed(f"output {position} of {what} differs from eager's")


def _is_close(got, want):
    if not want.dtype.is_floating_point or want.numel() == 0:
        return torch.equal(got, want)
    spread = want.double().nan_to_num(0.0, 0.0, 0.0).square().mean().sqrt().item()
    share = 1e-3 if want.dtype in (torch.float32, torch.float64) else 3e-2
    return torch.allclose(got.double(), want.double(), rtol=share, atol=share * spread, equal_nan=True)


def _is_no_less_exact(got, want, truth):
    finite = want.isfinite() & truth.isfinite()
    if not torch.allclose(got[~finite], want[~finite], rtol=0, atol=0, equal_nan=True):
        return False
    if not finite.any():
        return True
    errors = [(side.double() - truth.double())[finite].abs() for side in (got, want)]
    return bool(errors[0].max() <= 2 * errors[1].max()
                and errors[0].square().mean() <= 2 * errors[1].square().mean())


class InDouble(torch.fx.Interpreter):
    """Runs a graph of ATen's operators with double precision in the place of every other, on values that have it."""

    def call_function(self, target, args, kwargs):
        args, kwargs = torch.utils._pytree.tree_map(in_double, (args, kwargs))
        return torch.utils._pytree.tree_map(in_double, super().call_function(target, args, kwargs))


def in_double(value):
    if isinstance(value, torch.dtype) and value.is_floating_point:
        return torch.float64
    if isinstance(value, torch.Tensor) and value.is_floating_point() and value.dtype is not torch.float64:
        return value.double()
    return value
