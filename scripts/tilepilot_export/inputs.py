"""The example inputs of an export: tensors of the right form whose memory is never touched, and what they may not be."""

import torch

from .errors import ExportError
from .probe import described, fake_mode


def inputs_without_values(program):
    """What the traced get_inputs() returns, with nothing in it: for the export, forms are all. None where leaves share
    memory or would lie elsewhere than in the host's memory."""
    outputs = next(node for node in program.graph.nodes if node.op == "output").args[0]
    examples = [leaf.meta["val"] if isinstance(leaf, torch.fx.Node) else leaf for leaf in outputs]
    tensors = [leaf for leaf in examples if isinstance(leaf, torch.Tensor)]
    if any(tensor.layout != torch.strided or tensor.device.type != "cpu" for tensor in tensors):
        return None
    if len({tensor.untyped_storage()._cdata for tensor in tensors}) < len(tensors):
        return None
    leaves = [torch.empty_strided(leaf.shape, leaf.stride(), dtype=leaf.dtype) if isinstance(leaf, torch.Tensor)
              else leaf for leaf in examples]
    return torch.utils._pytree.tree_unflatten(leaves, program.call_spec.out_spec)


def check_form(tensor, what):
    if tensor.layout != torch.strided:
        form = str(tensor.layout).removeprefix("torch.")
        raise ExportError("unsupported_input", f"{what} is a tensor of layout `{form}`; only dense ones are supported",
                          hint="give the dense tensor, and convert it in `forward` if the model needs that")
    if tensor.is_complex():
        form = str(tensor.dtype).removeprefix("torch.")
        raise ExportError("unsupported_input", f"{what} is {form}; complex tensors are not supported",
                          hint="pass real and imaginary part as `torch.view_as_real` gives them")


def check_inputs(inputs):
    tensors = [leaf for leaf in torch.utils._pytree.tree_leaves(inputs) if isinstance(leaf, torch.Tensor)]
    if not tensors:
        raise ExportError("no_tensors", "`get_inputs()` returns no tensor: every call would compute the same",
                          hint="return the list of tensors that `Model.forward` takes")
    for i, tensor in enumerate(tensors):
        check_form(tensor, f"input {i}")
        if tensor.device.type == "meta":
            raise ExportError("unsupported_input", f"input {i} is on the device `meta` and has no values",
                              hint="make it with `torch.rand` or the like")


def check_outputs(program):
    outputs = next(node for node in program.graph.nodes if node.op == "output").args[0]
    kinds = [spec.kind.name for spec in program.graph_signature.output_specs]
    examples = [leaf.meta.get("val") for leaf, kind in zip(outputs, kinds)
                if kind == "USER_OUTPUT" and isinstance(leaf, torch.fx.Node)]
    tensors = [leaf for leaf in examples if isinstance(leaf, torch.Tensor)]
    if not tensors:
        raise ExportError("no_outputs", "`forward` returns no tensor: there is nothing to verify",
                          hint="return what the model computes")
    for i, tensor in enumerate(tensors):
        check_form(tensor, f"output {i}")


def check_second_call(inputs, get_inputs, warnings):
    """Whether get_inputs() gives the same form, and the same numbers beside tensors, when it is called again."""
    try:
        with fake_mode():
            again = get_inputs()
    except Exception:  # it reads values: those inputs are fixed
        return
    for i, (first, second) in enumerate(zip(described(inputs), described(again))):
        if first != second:
            raise ExportError("inputs_vary", f"`get_inputs()` gives other shapes or types from call to call: {first} and "
                              f"{second}", hint="fix the sizes: a verified program holds for one set of shapes")
    leaves = (torch.utils._pytree.tree_leaves(tree) for tree in (inputs, again))
    for i, (first, second) in enumerate(zip(*leaves)):
        if not isinstance(first, torch.Tensor) and first != second:
            warnings.append(f"argument {i} of `forward` is {first!r} in one call of `get_inputs` and {second!r} in the "
                            "next: the first is taken for all")
