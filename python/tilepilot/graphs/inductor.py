"""Inductor, torch's own compiler, for what of a graph no program computes.

Its code is used where it agrees with eager's results on the values of a call. Programs are opaque operators in it."""

import itertools
import warnings

import torch
import torch._inductor

from tilepilot.graphs.agreement import NotUsed

_numbers = itertools.count()


def compiled(graph, examples, programs, *, draws):
    """The graph as one function of what it is called with, like `examples`. Raises NotUsed.

    `programs`: the OpaqueCall for each node that calls a program. `draws`: the graph draws random numbers, which are to
    be eager's."""
    own, places, kept = torch.fx.Graph(), {}, []
    placeholders = [node for node in graph.nodes if node.op == "placeholder"]
    for index, (node, value) in enumerate(zip(placeholders, examples, strict=True)):
        if isinstance(value, torch.Tensor):
            places[node] = own.placeholder(node.name)
            kept.append(index)
        elif node.users:
            raise NotUsed("Inductor gets no graph that computes with numbers of the call")
    for node in graph.nodes:
        if node in programs:
            sources = [places[source] for source in node.args]
            places[node] = own.call_function(programs[node].operator, (sources,))
        elif node.op != "placeholder":
            places[node] = own.node_copy(node, places.__getitem__)
    module = torch.fx.GraphModule(torch.nn.Module(), own)
    try:
        with torch.no_grad(), warnings.catch_warnings():
            # Nobody asked for Inductor: what it cannot do well, eager does.
            warnings.filterwarnings("ignore", module=r"torch\._inductor")
            made = torch._inductor.compile(module, [examples[index] for index in kept],
                                           options={"fallback_random": draws})
    except Exception as error:  # no compiler for C++, no Triton, an operator that it does not know
        raise NotUsed(f"Inductor cannot compile it: {(str(error).strip() or repr(error)).splitlines()[0]}") from error

    def call(*arguments, _alive=tuple(programs.values())):
        return tuple(made(*[arguments[index] for index in kept]))

    return call


class OpaqueCall:
    """A program's call as an operator of torch, as long as this object lives."""

    def __init__(self, call):
        facts = call.results
        name = f"region_{next(_numbers)}"
        self._library = torch.library.Library("tilepilot_graphs", "FRAGMENT")
        self._library.define(f"{name}(Tensor[] values) -> Tensor[]", tags=(torch.Tag.needs_fixed_stride_order,))
        self._library.impl(name, lambda values: list(call.compute(values)), "CompositeExplicitAutograd")
        torch.library.register_fake(
            f"tilepilot_graphs::{name}",
            lambda values: [torch.empty_strided(shape, strides, dtype=dtype, device=device)
                            for shape, strides, dtype, device in facts], lib=self._library)
        self.operator = getattr(torch.ops.tilepilot_graphs, name).default
