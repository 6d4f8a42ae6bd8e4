"""What `forward` keeps for its next call in attributes that are no buffers."""

import contextlib
import copy
import functools

import torch


def is_plain(value):
    if isinstance(value, (list, tuple, set)):
        return all(is_plain(item) for item in value)
    if isinstance(value, dict):
        return all(is_plain(key) and is_plain(item) for key, item in value.items())
    return value is None or type(value) in (bool, int, float, str)


class Form:
    """Of a tensor in an attribute; `tensor` while it lives tells it from another one."""

    def __init__(self, tensor):
        self.tensor, self.shape, self.dtype = tensor, [int(size) for size in tensor.shape], tensor.dtype

    def __eq__(self, other):
        return isinstance(other, Form) and self.tensor is other.tensor

    def is_like(self, tensor):
        return self.shape == [int(size) for size in tensor.shape] and self.dtype == tensor.dtype


def attributes(model):
    """{(path of the submodule, name): a copy of the value, or the form of a tensor}"""
    own = set(vars(torch.nn.Module())) | {"forward"}
    found = {}
    for path, module in model.named_modules():
        for name, value in vars(module).items():
            if name not in own and isinstance(value, torch.Tensor):
                found[path, name] = Form(value)
            elif name not in own and is_plain(value):
                found[path, name] = copy.deepcopy(value)
    return found


def full_name(path, name):
    return f"{path}.{name}" if path else name


class Kept:
    """The attributes that are others after a call: {(path, name): value or form}."""

    def __init__(self):
        self.changed = {}


@contextlib.contextmanager
def watched(model):
    """Tells what calls of `model` under the context change."""
    kept, forward = Kept(), model.forward

    @functools.wraps(forward)
    def look(*args, **kwargs):
        before = attributes(model)
        result = forward(*args, **kwargs)
        after = attributes(model)
        kept.changed = {key: value for key, value in after.items() if before.get(key, ...) != value}
        return result

    model.forward = look
    try:
        yield kept
    finally:
        del model.forward


@contextlib.contextmanager
def as_after(model, changed):
    """The model as such a call leaves it."""
    modules = dict(model.named_modules())
    before = {key: vars(modules[key[0]]).get(key[1], ...) for key in changed}
    for (path, name), value in changed.items():
        is_tensor = isinstance(value, Form)
        setattr(modules[path], name, torch.zeros(value.shape, dtype=value.dtype) if is_tensor else copy.deepcopy(value))
    try:
        yield
    finally:
        for (path, name), value in before.items():
            if value is ...:
                delattr(modules[path], name)
            else:
                setattr(modules[path], name, value)


def drawn_like(leaf):
    if not isinstance(leaf, torch.Tensor):
        return leaf
    return torch.randn_like(leaf) if leaf.is_floating_point() else torch.zeros_like(leaf)


def same(one, other):
    pairs = list(zip(*(torch.utils._pytree.tree_leaves(tree) for tree in (one, other))))
    return all(torch.equal(a, b) if isinstance(a, torch.Tensor) else a == b for a, b in pairs)


def goes_on(model, inputs):
    """Whether a call gives something else after one on other inputs, buffers apart. A table that the first call makes is
    no state."""
    first, second = (torch.utils._pytree.tree_map(drawn_like, list(inputs)) for _ in range(2))
    if any(isinstance(leaf, torch.Tensor) and leaf.is_meta for leaf in torch.utils._pytree.tree_leaves(first)):
        return False

    def called_after(earlier):
        copied = copy.deepcopy(model)
        for call in earlier:
            copied(*copy.deepcopy(call))
            copied.load_state_dict(model.state_dict())
        torch.manual_seed(0)
        return copied(*copy.deepcopy(second))

    try:
        with torch.no_grad():
            return not same(called_after([]), called_after([first]))
    except Exception:
        return True


def shows(node, placeholders):
    """Whether a node of a graph is one of these placeholders, by name, or a view of one."""
    while node.op == "call_function":
        returns = getattr(getattr(node.target, "_schema", None), "returns", ())
        is_view = len(returns) == 1 and returns[0].alias_info is not None and not returns[0].alias_info.is_write
        if not is_view or not node.args or not isinstance(node.args[0], torch.fx.Node):
            return False
        node = node.args[0]
    return node.op == "placeholder" and node.name in placeholders


def kept_inputs(model, inputs, program):
    """Names of parameters and buffers that `forward` makes an input itself (`self.last = x`): from then on they are
    what its memory holds. A graph has a copy instead."""
    kinds = {spec.arg.name: spec.kind.name for spec in program.graph_signature.input_specs if hasattr(spec.arg, "name")}
    inputs_of_graph = {name for name, kind in kinds.items() if kind == "USER_INPUT"}
    state = {name for name, kind in kinds.items() if kind in ("PARAMETER", "BUFFER")}
    aten = torch.ops.aten
    copies = [node for node in program.graph.nodes if node.target in (aten.copy_.default, aten.set_.source_Tensor)]
    if not any(shows(node.args[0], state) and shows(node.args[1], inputs_of_graph) for node in copies):
        return set()
    leaves = torch.utils._pytree.tree_leaves(list(inputs))
    if any(isinstance(leaf, torch.Tensor) and leaf.is_meta for leaf in leaves):
        return set()
    copied, given = copy.deepcopy(model), copy.deepcopy(list(inputs))
    with torch.no_grad():
        copied(*given)
    places = {leaf.untyped_storage().data_ptr() for leaf in torch.utils._pytree.tree_leaves(given)
              if isinstance(leaf, torch.Tensor) and leaf.numel()}
    return {name for name, tensor in copied.state_dict(keep_vars=True).items()
            if tensor.numel() and tensor.untyped_storage().data_ptr() in places}
