# `torch.amp` for scripts: the decorators that autograd functions carry. No types change by themselves here.
from torch import autocast


def custom_fwd(fwd=None, *, device_type="cuda", cast_inputs=None):
    if cast_inputs is not None:
        raise NotImplementedError("`custom_fwd` with cast_inputs is not supported")
    return fwd if fwd is not None else lambda function: function


def custom_bwd(bwd=None, *, device_type="cuda"):
    return bwd if bwd is not None else lambda function: function
