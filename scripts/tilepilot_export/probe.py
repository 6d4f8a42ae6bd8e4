"""What a model file makes, found on tensors that have shapes but no memory."""

import sys
import types

import torch
from torch._subclasses.fake_tensor import FakeTensorMode

PROBED = "tilepilot_probed_model"


class Probed:
    """`inputs`, `weights`: shapes and types, None where the file fails; `ran`: whether the forward pass did."""

    inputs = weights = None
    ran = has_empty_output = False


def described(tree):
    leaves, spec = torch.utils._pytree.tree_flatten(tree)
    return [(tuple(leaf.shape), leaf.dtype) if isinstance(leaf, torch.Tensor) else type(leaf) for leaf in leaves] + [
        str(spec)]


def load(path, source):
    module = types.ModuleType(PROBED)
    module.__file__ = path
    sys.modules[PROBED] = module
    exec(compile(source, path, "exec"), module.__dict__)
    return module


def fake_mode():
    return FakeTensorMode(allow_non_fake_inputs=True)


def probe(path, source, run=False):
    """Without `run`, the forward pass is left out."""
    result = Probed()
    state = torch.get_rng_state()
    try:
        module = load(path, source)
        with fake_mode(), torch.no_grad():
            inputs = list(module.get_inputs())
            result.inputs = described(inputs)
            model = built(module)
            result.weights = [tuple(tensor.shape) for tensor in model.state_dict().values()]
            if run:
                outputs = torch.utils._pytree.tree_leaves(model(*inputs))
                result.has_empty_output = any(isinstance(leaf, torch.Tensor) and leaf.numel() == 0 for leaf in outputs)
                result.ran = True
    except Exception:  # the caller compares what there is
        pass
    finally:
        torch.set_rng_state(state)
        sys.modules.pop(PROBED, None)
    return result


def built(module):
    """The model, on tensors without memory; with memory where its constructor reads values."""
    arguments = list(module.get_init_inputs())
    try:
        return module.Model(*arguments)
    except torch._subclasses.fake_tensor.DataDependentOutputException:
        with torch._subclasses.fake_tensor.unset_fake_temporarily():
            return module.Model(*arguments)
