"""The example inputs of an export: tensors of the right form whose memory is never touched, and what they may not be."""

import torch

from .errors import ExportError
from .probe import described, fake_mode


def inputs_without_values(program, warnings):
    """What the traced get_inputs() returns, with nothing in it: for the export, forms are all. None where leaves would lie
    elsewhere than in the host's memory."""
    outputs = next(node for node in program.graph.nodes if node.op == "output").args[0]
    examples = [leaf.meta["val"] if isinstance(leaf, torch.fx.Node) else leaf for leaf in outputs]
    tensors = [leaf for leaf in examples if isinstance(leaf, torch.Tensor)]
    if any(tensor.layout != torch.strided or tensor.device.type != "cpu" for tensor in tensors):
        return None
    note_sharing(examples, warnings)
    leaves = [torch.empty_strided(leaf.shape, leaf.stride(), dtype=leaf.dtype) if isinstance(leaf, torch.Tensor)
              else leaf for leaf in examples]
    return torch.utils._pytree.tree_unflatten(leaves, program.call_spec.out_spec)


def note_sharing(leaves, warnings):
    """The leaves that share memory with an earlier one."""
    first, shared = {}, []
    for i, leaf in enumerate(leaves):
        if not isinstance(leaf, torch.Tensor) or leaf.layout != torch.strided:
            continue
        earlier = first.setdefault(leaf.untyped_storage()._cdata, i)
        if earlier != i:
            shared.append(i)
            warnings.append(f"inputs {earlier} and {i} share memory in `get_inputs`: they are taken as tensors of their "
                            "own")
    return shared


def apart(inputs, warnings):
    """The inputs, none of which shares memory with another one: `forward` is exported for any inputs of their form."""
    leaves, spec = torch.utils._pytree.tree_flatten(inputs)
    for i in note_sharing(leaves, warnings):
        own = torch.empty_strided(leaves[i].shape, leaves[i].stride(), dtype=leaves[i].dtype, device=leaves[i].device)
        leaves[i] = own.copy_(leaves[i])
    return torch.utils._pytree.tree_unflatten(leaves, spec)


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
