"""A traced graph as one of ATen's operators, at the sizes of one call."""

import dataclasses
import itertools

import torch


class NotCaptured(Exception):
    """A graph that stays with torch, and why."""


@dataclasses.dataclass
class Capture:
    """Operators as eager calls them, nothing decomposed; one placeholder for each tensor that goes in."""

    graph: torch.fx.Graph
    placeholders: list  # with those of constants first
    constants: list  # tensors for the first placeholders
    weights: set  # placeholders that are parameters or buffers of a module

    def copied_where_written(self, values):
        """The placeholders' values for a call that changes none of these."""
        written = mutated_arguments(self.graph)
        return [value.clone() if node in written else value for node, value in zip(self.placeholders, values)]


def capture(traced, arguments):
    """The operators that `traced` calls with `arguments`. Numbers among these become constants."""
    traced = _with_numbers(_without_gradient_modes(traced), arguments)
    try:
        with torch.no_grad():
            program = torch.export.export(traced, tuple(arguments), strict=False)
    except Exception as error:  # the exporter raises many kinds
        raise NotCaptured(f"torch.export cannot trace it: {str(error).strip().splitlines()[0]}") from error
    if any(spec.kind.name != "USER_OUTPUT" for spec in program.graph_signature.output_specs):
        raise NotCaptured("it has outputs that its graph does not return")
    graph = program.graph
    _remove_assertions(graph)
    if any(node.op in ("get_attr", "call_module") for node in graph.nodes):
        raise NotCaptured("it has branches or loops of its own")
    placeholders = [node for node in graph.nodes if node.op == "placeholder"]
    constants, weights, given = [], set(), []
    for node, spec in zip(placeholders, program.graph_signature.input_specs):
        if spec.kind.name == "USER_INPUT":
            given.append(node)
        elif (tensor := program.constants.get(spec.target, program.state_dict.get(spec.target))) is not None:
            constants.append((node, tensor))
        else:
            raise NotCaptured(f"it uses a `{spec.kind.name.lower()}`")
    names = [node.target for node in traced.graph.nodes if node.op == "placeholder"]
    for node, name, value in itertools.zip_longest(given, names, arguments):
        if isinstance(value, torch.nn.Parameter) or isinstance(value, torch.Tensor) and _is_buffer(name, value):
            weights.add(node)
    return Capture(graph, [node for node, _ in constants] + given, [tensor for _, tensor in constants], weights)


def _remove_assertions(graph):
    """Those of dtypes and devices, which Dynamo's guards make certain. The exporter writes one for each conversion."""
    for node in list(graph.nodes):
        if node.op == "call_function" and node.target is torch.ops.aten._assert_tensor_metadata.default:
            graph.erase_node(node)


def is_number(node):
    """Whether a placeholder of Dynamo's graph is a number. Some real numbers are passed as tensors."""
    return not isinstance(node.meta.get("example_value"), torch.Tensor) or _is_asked_for_a_number(node)


def _is_asked_for_a_number(node):
    return bool(node.users) and all(user.op == "call_method" and user.target == "item" for user in node.users)


def _with_numbers(traced, arguments):
    """Those that are passed as tensors become constants."""
    placeholders = [node for node in traced.graph.nodes if node.op == "placeholder"]
    constants = {user: value.item() for node, value in zip(placeholders, arguments)
                 if isinstance(value, torch.Tensor) and _is_asked_for_a_number(node) for user in node.users}
    if not constants:
        return traced
    graph, kept = torch.fx.Graph(), {}
    for node in traced.graph.nodes:
        kept[node] = constants[node] if node in constants else graph.node_copy(node, kept.__getitem__)
    return torch.fx.GraphModule(traced, graph)


def is_gradient_mode(node):
    return node.op == "call_function" and node.target is torch._C._set_grad_enabled


def _without_gradient_modes(traced):
    """Where no gradient is wanted they change nothing."""
    modes = [node for node in traced.graph.nodes if is_gradient_mode(node)]
    if not modes:
        return traced
    if len(modes) % 2:
        raise NotCaptured("it ends in another gradient mode than it begins with")
    graph = torch.fx.Graph()
    kept = {}
    for node in traced.graph.nodes:
        if not is_gradient_mode(node):
            kept[node] = graph.node_copy(node, kept.__getitem__)
    return torch.fx.GraphModule(traced, graph)


def _is_buffer(name, value):
    """Whether a placeholder of Dynamo's graph is a buffer of reals. Others are inputs: their values choose elements."""
    return "_buffers_" in name and value.is_floating_point() and value.dim() > 0


def mutated_arguments(graph):
    """Nodes that an operator of the graph writes to, and placeholders that share memory with these."""
    written = set()
    for node in graph.nodes:
        if not is_operator(node):
            continue
        schema = node.target._schema
        bound = arguments_by_name(node)
        for argument in schema.arguments:
            if argument.alias_info is not None and argument.alias_info.is_write:
                written.update(tensors_of(bound.get(argument.name)))
        if bound.get("training") is True or bound.get("use_input_stats") is True:
            written.update(tensors_of([bound.get("running_mean"), bound.get("running_var")]))
    storages = set(map(storage_of, written)) - {None}
    placeholders = [node for node in graph.nodes if node.op == "placeholder"]
    return written.union(node for node in placeholders if storage_of(node) in storages)


def storage_of(node):
    """What stands for the memory of a node's tensor; None: it has none. The exporter's tensors share memory as those of
    a call do, but for dropout in evaluation mode: eager returns its input, the exporter a copy."""
    while is_operator(node) and "dropout" in node.target._schema.name and node.all_input_nodes:
        node = node.all_input_nodes[0]
    value = node.meta.get("val")
    if not isinstance(value, torch.Tensor) or value.layout is not torch.strided:
        return None
    return value.untyped_storage()._cdata


def is_operator(node):
    return node.op == "call_function" and isinstance(node.target, torch._ops.OpOverload)


def arguments_by_name(node):
    """The arguments of an operator's call; those that are left out have their defaults."""
    found = {argument.name: argument.default_value for argument in node.target._schema.arguments
             if argument.has_default_value()}
    found.update(zip((argument.name for argument in node.target._schema.arguments), node.args))
    found.update(node.kwargs)
    return found


def tensors_of(value):
    """The nodes in an argument."""
    if isinstance(value, torch.fx.Node):
        yield value
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from tensors_of(item)
