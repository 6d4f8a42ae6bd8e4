"""Parts of a graph that one program may compute: runs of operators in the order in which eager calls them.

A run that is computed at once changes nothing of what happens before and after it, also where other operators write to
tensors, if the run itself writes to nothing that comes from outside and what it returns is memory of its own. The first
is checked here and both where the run is executed (`observed`)."""

import dataclasses
import operator

import torch

from tilepilot.graphs.capture import arguments_by_name, is_operator, mutated_arguments, storage_of
from tilepilot.graphs.devices import device_of, gpus_of, is_for_programs

# Operators that a run needs beside views and copies to be worth a program.
_FREE = {"view", "reshape", "permute", "transpose", "t", "expand", "slice", "select", "unsqueeze", "squeeze", "alias",
         "detach", "contiguous", "clone", "flatten", "unflatten", "split", "chunk", "unbind", "_to_copy", "to",
         "lift_fresh_copy", "numpy_T", "movedim"}


@dataclasses.dataclass(eq=False)
class Region:
    nodes: list
    inputs: list  # nodes outside, or placeholders
    outputs: list  # nodes inside that are used outside
    module: torch.fx.GraphModule  # called with the inputs, returns a tuple of outputs

    def halves(self):
        """Two regions for this one; none where it is one operator that computes."""
        computing = [index for index, node in enumerate(self.nodes) if computes(node)]
        if len(computing) < 2:
            return []
        middle = computing[len(computing) // 2]
        return [made for nodes in (self.nodes[:middle], self.nodes[middle:]) if (made := region_of(nodes))]


def find_regions(captured):
    """The longest runs that a program may compute, first to last."""
    written = {storage_of(node) for node in mutated_arguments(captured.graph) if node.op == "placeholder"}
    runs = [[]]
    for node in captured.graph.nodes:
        if node.op in ("placeholder", "output"):
            continue
        if may_be_computed(node) and written.isdisjoint(map(storage_of, node.all_input_nodes)):
            if runs[-1] and device_of(runs[-1][0]) != device_of(node):
                runs.append([])
            runs[-1].append(node)
        elif runs[-1]:
            runs.append([])
    return [region for run in runs if (region := region_of(run))]


def may_be_computed(node):
    """Whether an operator is a function of its arguments: it draws no random numbers and keeps no statistics."""
    if node.op != "call_function":
        return False
    if node.target is operator.getitem:
        return True
    if not is_operator(node) or node.target.namespace != "aten" or not _tensors_are_plain(node.meta.get("val")):
        return False
    if any(device_of(source) != device_of(node) for source in node.all_input_nodes):
        return False
    bound = arguments_by_name(node)
    if bound.get("training") is True or bound.get("use_input_stats") is True and bound.get("running_mean") is not None:
        return False
    if torch.Tag.nondeterministic_seeded not in node.target.tags:
        return True
    # Of these only dropout is random, and only where it drops.
    return bound.get("dropout_p") == 0.0 or bound.get("train") is False or bound.get("p") == 0.0


def _tensors_are_plain(value):
    leaves = value if isinstance(value, (list, tuple)) else [value]
    return all(leaf is None or isinstance(leaf, torch.Tensor) and is_for_programs(leaf.device)
               and leaf.layout is torch.strided and not leaf.is_complex() for leaf in leaves)


def computes(node):
    """Whether an operator is more than a view or a copy."""
    return is_operator(node) and node.target._schema.name.removeprefix("aten::") not in _FREE


def names_of(nodes):
    """Names of the operators among them, in order."""
    return [node.target._schema.name.removeprefix("aten::") for node in nodes if is_operator(node)]


def region_of(nodes):
    """The region of these nodes; None where they compute nothing, or need or return what is no tensor."""
    # What takes an outer operator's results apart stays outside with it.
    inside = set(nodes)
    nodes = [node for node in nodes if node.target is not operator.getitem or node.args[0] in inside]
    inside = set(nodes)
    if not any(map(computes, nodes)):
        return None
    inputs = list(dict.fromkeys(source for node in nodes for source in node.all_input_nodes if source not in inside))
    outputs = [node for node in nodes if any(user not in inside for user in node.users)]
    if not outputs or any(not isinstance(node.meta.get("val"), torch.Tensor) for node in inputs + outputs):
        return None
    part, places = torch.fx.Graph(), {}
    for position, node in enumerate(inputs):
        places[node] = part.placeholder(f"x{position}")
        places[node].meta = dict(node.meta)
    for node in nodes:
        places[node] = part.node_copy(node, places.__getitem__)
    part.output(tuple(places[node] for node in outputs))
    return Region(nodes, inputs, outputs, torch.fx.GraphModule(torch.nn.Module(), part))


@dataclasses.dataclass
class Observation:
    """What a call of the whole graph shows of a region."""

    inputs: list
    refusal: str = ""  # why one program cannot compute it


def observe(captured, regions, arguments):
    """An observation for each region, of a call that changes none of the arguments."""
    values = captured.copied_where_written(arguments)
    observer = _Observer(torch.fx.GraphModule(torch.nn.Module(), captured.graph), regions)
    with random_numbers_kept(captured, values), torch.no_grad():
        observer.run(*values)
    return observer.found


def random_numbers_kept(captured, values):
    """A block whose calls of the graph leave the generators as they are. These belong to all threads: they are restored
    only where the graph draws from them."""
    return torch.random.fork_rng(devices=gpus_of(values), enabled=draws_numbers(captured))


def draws_numbers(captured):
    """Whether an operator of the graph draws random numbers."""
    seeded = torch.Tag.nondeterministic_seeded
    return any(is_operator(node) and seeded in node.target.tags and not may_be_computed(node)
               for node in captured.graph.nodes)


class _Observer(torch.fx.Interpreter):
    def __init__(self, module, regions):
        super().__init__(module, garbage_collect_values=False)
        self.found, self._regions, self._versions = {}, regions, {}
        self._names = {node.name: node for node in module.graph.nodes}
        self._first = {region.nodes[0].name: region for region in regions}
        self._last = {region.nodes[-1].name: region for region in regions}

    def run_node(self, node):
        if region := self._first.get(node.name):
            self._versions = {source: self._value(source)._version for source in region.inputs
                              if self._names[source.name] in self.env}
        result = super().run_node(node)
        if region := self._last.get(node.name):
            self.env[node] = result
            self.found[region] = self._observation(region)
        return result

    def _value(self, node):
        return self.env[self._names[node.name]]

    def _observation(self, region):
        inputs = [self._value(node) for node in region.inputs]
        if any(self._value(node)._version != version for node, version in self._versions.items()):
            return Observation(inputs, "it writes to its inputs")
        storages = {tensor.untyped_storage().data_ptr() for tensor in inputs}
        for node in region.outputs:
            storage = self._value(node).untyped_storage().data_ptr()
            if storage in storages:
                return Observation(inputs, "what it returns shares memory with something else")
            storages.add(storage)
        return Observation(inputs)
