#!/usr/bin/env python3
"""Exports a model file in KernelBench form as a reference that TilePilot's C++ reads.

    export_reference.py MODEL.py OUTDIR [--seed N] [--dtype fp32|fp16|bf16] [--scale 1/4]
                        [--graph-only]
    export_reference.py MODEL.py --serve-compiled default|max-autotune [--seed N] [--threads N]
                                 [--dtype fp32|fp16|bf16] [--device cpu|cuda] [--scale 1/4]
    export_reference.py --serve NAME

The first form writes OUTDIR/reference.json and OUTDIR/weights.safetensors (docs/reference-format.md), all or
nothing; `--graph-only` makes neither weights nor inputs, and leaves the former out. One JSON object on standard
output says how it went:
{"ok": true, ...} with exit code 0, or {"ok": false, "error": KIND, "message", "file", "line", "hint"} with exit
code 2 if the model file is at fault and 3 if this Python lacks something. Whatever the model prints goes to
standard error. The second form holds the same model under torch.compile and answers the judge's requests on the
socket that is descriptor 3 (tilepilot_export/compiled.py). The third form does what the first does for others
(export_client.py), as often as it is asked to.
"""

import argparse
import functools
import json
import operator
import os
import re
import select
import sys
import types

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from tilepilot_export.advice import OF_FIXED_SIZE  # noqa: E402
from tilepilot_export.errors import ExportError, first_line, line_in  # noqa: E402
from tilepilot_export.collection import no_collection  # noqa: E402
from tilepilot_export.folder import write_folder  # noqa: E402

FORMAT = "tilepilot-reference"
VERSION = 1
MOST_NUMBERS = 8  # among the inputs that are looked at: each takes an export


# Reading and running the user's file


def run_user_code(path, what, function):
    try:
        return function()
    except ExportError:
        raise
    except (Exception, SystemExit) as error:
        message = f"{what} raised `{type(error).__name__}`: {first_line(error)}"
        raise ExportError("model_raised", message, line_in(path, error)) from error


def read_source(path):
    try:
        with open(path, encoding="utf-8") as file:
            return file.read()
    except FileNotFoundError:
        raise ExportError("no_such_file", f"there is no file `{path}`") from None
    except (OSError, UnicodeDecodeError) as error:
        raise ExportError("unreadable_file", f"`{path}` cannot be read: {first_line(error)}") from None


def load_module(path, source):
    try:
        code = compile(source, path, "exec")
    except SyntaxError as error:
        raise ExportError("not_python", f"the file is not Python: {error.msg}", error.lineno or 0) from None
    except ValueError as error:
        raise ExportError("not_python", f"the file is not Python: {first_line(error)}") from None
    module = types.ModuleType("tilepilot_model")
    module.__file__ = path
    sys.modules[module.__name__] = module
    sys.path.insert(0, os.path.dirname(path))
    run_user_code(path, "importing the model file", lambda: exec(code, module.__dict__))
    for name, hint in (
        ("Model", "define `class Model(nn.Module)`"),
        ("get_inputs", "define `get_inputs()`, which returns the list of arguments of `Model.forward`"),
        ("get_init_inputs", "define `get_init_inputs()`, which returns the list of arguments of `Model.__init__`"),
    ):
        if not callable(getattr(module, name, None)):
            raise ExportError(f"no_{name.lower()}", f"the file defines no `{name}`", hint=hint)
    return module


def call_for_list(path, module, name):
    result = run_user_code(path, f"`{name}()`", getattr(module, name))
    if not isinstance(result, (list, tuple)):
        line = getattr(module, name).__code__.co_firstlineno if hasattr(getattr(module, name), "__code__") else 0
        raise ExportError("not_a_list", f"`{name}()` returns `{type(result).__name__}`, not a list", line)
    return list(result)


def build_model(path, module, init_inputs, seed, dtype=None, inputs=None):
    torch.manual_seed(seed)
    model = run_user_code(path, "`Model(*get_init_inputs())`",
                          lambda: built_within_memory(lambda: module.Model(*init_inputs)))
    if not isinstance(model, torch.nn.Module):
        raise ExportError("no_model", "`Model` is not a subclass of `nn.Module`")
    model = model.to(dtype) if dtype else model
    if inputs is not None:
        run_user_code(path, "the first call of the model's lazy layers", lambda: with_weights(model, inputs))
    return model


# Graphs as plain data


class GraphWriter:
    """Flattens one exported graph into values and nodes."""

    # Checks of the tracer that compute nothing.
    SKIPPED = {"_assert_tensor_metadata", "_assert_scalar", "_assert_async", "sym_constrain_range",
               "sym_constrain_range_for_size"}

    def __init__(self, path):
        self.path = path
        self.values, self.inputs, self.nodes = [], [], []
        self.ids = {}  # fx node -> value id, or a (nested) list of them, or a plain constant

    def add_value(self, kind, name, example):
        value = {"kind": kind, "name": name}
        if isinstance(example, torch.Tensor):
            value.update(dtype=str(example.dtype).removeprefix("torch."), shape=[int(n) for n in example.shape],
                         strides=[int(n) for n in example.stride()])
        else:
            value["tensor"] = False
        self.values.append(value)
        return {"value": len(self.values) - 1}

    def encode(self, argument):
        if isinstance(argument, torch.fx.Node):
            return self.ids[argument]
        if isinstance(argument, (list, tuple)):
            return [self.encode(item) for item in argument]
        if isinstance(argument, dict):
            return {"dict": [[str(key), self.encode(item)] for key, item in argument.items()]}
        return encode_plain(argument)

    def source_line(self, node):
        frames = re.findall(r'File "(.+?)", line (\d+)', node.meta.get("stack_trace") or "")
        return next((int(line) for file, line in reversed(frames) if file == self.path), 0)

    def module_path(self, node):
        stack = node.meta.get("nn_module_stack")
        return list(stack.values())[-1][0] if stack else ""

    def unsupported(self, node, why, hint):
        raise ExportError("unsupported_op", f"the model cannot be exported: {why}", self.source_line(node), hint)

    def run(self, graph, owner, arguments):
        """Adds the nodes of `graph`; returns its outputs. `arguments` stand for its placeholders, in order."""
        arguments = iter(arguments)
        for node in graph.nodes:
            if node.op == "placeholder":
                self.ids[node] = next(arguments)
            elif node.op == "get_attr":
                self.ids[node] = getattr(owner, node.target)
            elif node.op == "output":
                return self.encode(node.args[0])
            elif node.op == "call_function":
                self.call(node)
            else:
                self.unsupported(node, f"a `{node.op}` node", "")

    def call(self, node):
        target = node.target
        if target is operator.getitem:
            self.ids[node] = self.ids[node.args[0]][node.args[1]]
        elif isinstance(target, torch._ops.OpOverload):
            if target._opname not in self.SKIPPED:
                self.operator(node, target)
        elif str(target) == "wrap_with_set_grad_enabled":
            submodule = self.ids[node.args[1]]
            self.ids[node] = self.run(submodule.graph, submodule, [self.encode(item) for item in node.args[2:]])
        else:
            name = getattr(target, "__name__", str(target))
            if name not in ("cond", "while_loop"):
                self.unsupported(node, f"`{name}` takes functions of Python, and is no operator of ATen",
                                 "write it with plain operators")
            self.unsupported(node, f"`{name}` depends on values that are known only at run time",
                             "make the branch, the loop or the size independent of tensor values")

    def operator(self, node, target):
        kwargs = [[key, self.encode(item)] for key, item in node.kwargs.items()]
        record = {"op": target._schema.name, "overload": target._schema.overload_name,
                  "args": [self.encode(item) for item in node.args], "kwargs": kwargs}
        example = node.meta.get("val")
        if any(isinstance(n, torch.SymInt) for item in torch.utils._pytree.tree_leaves(example)
               for n in (item.shape if isinstance(item, torch.Tensor) else [item])):
            self.unsupported(node, f"the size of what `{record['op']}` gives depends on tensor values",
                             OF_FIXED_SIZE.get(target._opname, "use `torch.where` or masks of fixed size instead"))
        if isinstance(example, (list, tuple)):
            self.ids[node] = [None if item is None else self.add_value("node", f"{node.name}_{i}", item)
                              for i, item in enumerate(example)]
            outputs = [-1 if item is None else item["value"] for item in self.ids[node]]
        elif example is None:
            self.ids[node], outputs = None, []
        else:
            self.ids[node] = self.add_value("node", node.name, example)
            outputs = [self.ids[node]["value"]]
        record.update(outputs=outputs, module=self.module_path(node), line=self.source_line(node))
        self.nodes.append(record)

    def write_back(self, target, value):
        """What a program gives as a new value of a buffer or an input is written there."""
        self.nodes.append({"op": "aten::copy_", "overload": "", "args": [target, value], "kwargs": [], "outputs": [-1],
                           "module": "", "line": 0})

    def finish(self, outputs):
        used = set()

        def visit(argument):
            if isinstance(argument, list):
                for item in argument:
                    visit(item)
            elif isinstance(argument, dict):
                if "value" in argument:
                    used.add(argument["value"])
                elif "dict" in argument:
                    visit([item for _, item in argument["dict"]])

        visit(outputs)
        for node in self.nodes:
            visit(node["args"])
            visit([item for _, item in node["kwargs"]])
        for node in self.nodes:
            node["outputs"] = [value if value in used else -1 for value in node["outputs"]]
        return {"values": self.values, "inputs": self.inputs, "nodes": self.nodes, "outputs": outputs}


def structured(outputs, spec):
    """Puts the flat list `outputs` back into the shape of the pytree `spec`: lists and dicts."""
    flat = iter(outputs)

    def build(node):
        children = node.children() if callable(getattr(node, "children", None)) else node.children_specs
        if node.type is None:
            return next(flat) if node.num_leaves else None
        if node.type is dict or node.type.__name__ == "OrderedDict":
            return {"dict": [[str(key), build(child)] for key, child in zip(node.context, children)]}
        return [build(child) for child in children]

    return build(spec)


# Exporting


def input_recipe(get_inputs):
    """get_inputs() as a module, so that it has a graph."""

    class Recipe(torch.nn.Module):
        def forward(self):
            return list(get_inputs())

    return Recipe()


def cast_to(tree, dtype):
    """Floating tensors in `dtype`, the rest as it is; None keeps all."""

    def cast(leaf):
        return leaf.to(dtype) if isinstance(leaf, torch.Tensor) and leaf.is_floating_point() else leaf

    return torch.utils._pytree.tree_map(cast, tree) if dtype else tree


def placed_on(tree, device):
    return torch.utils._pytree.tree_map(lambda leaf: leaf.to(device) if isinstance(leaf, torch.Tensor) else leaf, tree)


def element_type(name):
    return {"fp32": torch.float32, "fp16": torch.float16, "bf16": torch.bfloat16}.get(name)


def forward_graph(path, program, weights, state, prefix="constant:"):
    """The graph of forward, and a map from state_dict names to value ids."""
    writer = GraphWriter(path)
    placeholders = [node for node in program.graph.nodes if node.op == "placeholder"]
    arguments, by_name = [], {}
    for node, spec in zip(placeholders, program.graph_signature.input_specs):
        kind, example = spec.kind.name, node.meta.get("val")
        target = spec.target or ""
        if kind == "USER_INPUT":
            reference = writer.add_value("input", node.name, example)
            writer.inputs.append(reference["value"])
        elif target in state:
            reference = writer.add_value("parameter" if kind == "PARAMETER" else "buffer", target, example)
            by_name[target] = reference["value"]
        elif kind in ("BUFFER", "CONSTANT_TENSOR", "PARAMETER"):
            tensor = program.constants.get(spec.target, program.state_dict.get(spec.target))
            reference = writer.add_value("constant", weights.add(prefix + target, tensor), example)
        else:
            raise ExportError("unsupported_value", f"the model uses a `{kind.lower()}`, which cannot be exported")
        arguments.append(reference)
    outputs = writer.run(program.graph, program.graph_module, arguments)
    placed = {spec.target or node.name: reference
              for node, spec, reference in zip(placeholders, program.graph_signature.input_specs, arguments)}
    given = []
    for output, spec in zip(outputs, program.graph_signature.output_specs):
        if spec.kind.name == "USER_OUTPUT":
            given.append(output)
        else:
            writer.write_back(placed[spec.target], output)
    return writer.finish(structured(given, program.call_spec.out_spec)), by_name


def list_of(inputs):
    if not isinstance(inputs, (list, tuple)):
        raise TypeError("not a list")  # told where it is called without a trace
    return list(inputs)


def traced_inputs(module, dtype, warnings):
    """get_inputs() as an exported program; None if it cannot be traced."""
    try:
        return torch.export.export(input_recipe(lambda: cast_to(list_of(module.get_inputs()), dtype)), (), strict=False)
    except Exception as error:
        warnings.append(f"`get_inputs` cannot be replayed with fresh seeds, its tensors are fixed: {first_line(error)}")
        return None


def input_graph(path, program, inputs, weights):
    """get_inputs() as a graph; what cannot be traced becomes fixed tensors."""
    writer = GraphWriter(path)
    if program:
        placeholders = [node for node in program.graph.nodes if node.op == "placeholder"]
        arguments = []
        for node, spec in zip(placeholders, program.graph_signature.input_specs):
            key = weights.add("input:" + spec.target, program.constants[spec.target])
            arguments.append(writer.add_value("constant", key, node.meta["val"]))
        outputs = writer.run(program.graph, program.graph_module, arguments)
        return writer.finish(structured(outputs, program.call_spec.out_spec))
    leaves, spec = torch.utils._pytree.tree_flatten(inputs)

    def fixed(i, leaf):
        if not isinstance(leaf, torch.Tensor):
            return encode_plain(leaf)
        return writer.add_value("constant", weights.add(f"input:{i}", leaf.clone()), leaf)

    return writer.finish(structured([fixed(i, leaf) for i, leaf in enumerate(leaves)], spec))


def state_entries(model, by_name, weights, state, attributes, inputs_kept):
    buffers = {name for name, _ in model.named_buffers(remove_duplicate=False)}
    entries = []
    values_by_tensor = {}
    for name, tensor in state.items():
        key = weights.add(name, tensor)
        value = by_name.get(name, values_by_tensor.get(key, -1))
        values_by_tensor.setdefault(key, value)
        entries.append({"name": name, "value": value, "tensor": key, "buffer": name in buffers,
                        "is_attribute": name in attributes, "is_input": name in inputs_kept})
    for entry in entries:  # a tied parameter's other name may come first
        if entry["value"] < 0:
            entry["value"] = max(other["value"] for other in entries if other["tensor"] == entry["tensor"])
    return entries


def read_model(path, scale):
    """(module, its text, what `--scale` changed in it)"""
    source = read_source(path)
    module = load_module(path, source)
    if not scale:
        return module, source, []
    source, changes = scaled_source(path, source, scale)
    return load_module(path, source) if changes else module, source, changes


def sizes_text(changes):
    return ", ".join(f"{change['name'] or 'line %d' % change['line']} {change['from']} -> {change['to']}"
                     for change in changes)


def without_memory(build):
    """A model whose weights have no values; None if its constructor reads values."""
    try:
        with torch.device("meta"):
            return build()
    except ExportError:
        return None


def export_reference(options):
    path = os.path.abspath(options.model)
    module, source, changes = read_model(path, options.scale)
    warnings = [f"at scale {options.scale}: {sizes_text(changes)}"] if changes else []
    init_inputs = call_for_list(path, module, "get_init_inputs")
    dtype = element_type(options.dtype)
    recipe_program = traced_inputs(module, dtype, warnings)
    inputs = inputs_without_values(recipe_program, warnings) if recipe_program else None
    if inputs is None:
        inputs = cast_to(call_for_list(path, module, "get_inputs"), dtype)
    check_inputs(inputs)
    inputs = apart(inputs, warnings)
    check_second_call(inputs, lambda: cast_to(list(module.get_inputs()), dtype), warnings)
    build = functools.partial(build_model, path, module, init_inputs, options.seed, dtype)
    model = without_memory(lambda: build(placed_on(inputs, "meta"))) if options.graph_only else None
    if model:
        inputs = placed_on(inputs, "meta")
    model = model or build(inputs)
    weights = Weights()
    program, attributes = export_program(path, model, inputs, warnings)
    state = model.state_dict()
    check_outputs(program)
    forward, by_name = forward_graph(path, program, weights, state)
    name_attributes(model, forward)
    entries = state_entries(model, by_name, weights, state, attributes, kept_inputs(model, inputs, program))
    numbers = find_numbers(path, model, inputs, forward, state)
    variants = find_variants(path, model, inputs, (forward, numbers), weights, state)
    recipe = input_graph(path, recipe_program, inputs, weights)
    del inputs
    reference = {
        "format": FORMAT, "version": VERSION, "model_path": path, "model_source": source,
        "torch_version": torch.__version__, "seed": options.seed, "dtype": options.dtype, "training": model.training,
        "scale": {"factor": options.scale or "1", "sizes": changes}, "warnings": warnings,
        "init_inputs": encode_plain(init_inputs), "parameters": entries, "forward": forward, "inputs": recipe,
        "numbers": numbers, "variants": variants, "weights": "weights.safetensors",
    }
    write_folder(os.path.abspath(options.out), reference, weights)
    return {"ok": True, "folder": os.path.abspath(options.out), "nodes": len(forward["nodes"]),
            "parameters": len(state), "warnings": warnings}


def find_numbers(path, model, inputs, forward, state):
    """Where forward's graph holds numbers among its inputs: an export for each, with another one, tells."""
    leaves, spec = torch.utils._pytree.tree_flatten(inputs)
    numbers = []
    for i in number_leaves(leaves)[:MOST_NUMBERS]:
        others = leaves[:i] + [other_number(leaves[i])] + leaves[i + 1:]
        try:
            program = export_program(path, model, torch.utils._pytree.tree_unflatten(others, spec), [])[0]
            places = number_places(forward, forward_graph(path, program, Weights(), state)[0], leaves[i])
        except ExportError:
            continue
        if places:
            numbers.append({"input": i, "places": places})
    return numbers


def find_variants(path, model, inputs, known, weights, state):
    """Forward with another value of a flag, or of a number that decides what the graph is, where the model takes it and
    gives outputs of the same form."""
    forward, numbers = known
    leaves, spec = torch.utils._pytree.tree_flatten(inputs)
    held = {number["input"] for number in numbers}
    variants = []
    for i in [i for i in deciding_leaves(leaves) if i not in held][:MOST_NUMBERS]:
        for value in other_values(leaves[i]):
            others = torch.utils._pytree.tree_unflatten(leaves[:i] + [value] + leaves[i + 1:], spec)
            try:
                program = export_program(path, model, others, [])[0]
                check_outputs(program)
                graph = forward_graph(path, program, weights, state, f"variant {len(variants)}:")[0]
            except ExportError:
                continue
            if same_form(forward, graph):
                variants.append({"input": i, "value": encode_plain(value),
                                 "forward": None if graph == forward else graph})
                break
    return variants


# torch.compile


def compiled_model(options):
    from tilepilot_export.compiled import CompiledModel
    path = os.path.abspath(options.model)
    module, _, _ = read_model(path, options.scale)
    if options.threads:
        torch.set_num_threads(options.threads)
    dtype = element_type(options.dtype)
    inputs = call_for_list(path, module, "get_inputs")
    model = build_model(path, module, call_for_list(path, module, "get_init_inputs"), options.seed, dtype,
                        cast_to(inputs, dtype))
    return CompiledModel(model, inputs, options.serve_compiled, options.device)


def serve_compiled(options):
    """Nothing is imported before the judge wants something: it may never do."""
    socket = 3
    select.select([socket], [], [])
    import_torch()
    from tilepilot_export.compiled import serve
    from tilepilot_export.wire import Wire
    wire = Wire(socket)
    first = wire.receive()
    if first is not None:
        serve(wire, first, lambda: compiled_model(options))


# The command line


def import_torch():
    global torch, Weights, scaled_source, built_within_memory, kept_inputs, name_attributes, with_weights, encode_plain
    global apart, check_inputs, check_outputs, check_second_call, inputs_without_values
    global deciding_leaves, export_program, number_leaves, number_places, other_number, other_values, same_form
    try:
        with no_collection():
            import torch
            import torch.export
    except Exception as error:
        raise ExportError("no_torch", f"this Python cannot import PyTorch: {first_line(error)}", code=3,
                          hint=f"install PyTorch 2.5 or newer for `{sys.executable}`") from None
    if tuple(int(part) for part in torch.__version__.split("+")[0].split(".")[:2]) < (2, 5):
        raise ExportError("no_torch", f"PyTorch {torch.__version__} is too old", code=3,
                          hint="install PyTorch 2.5 or newer")
    with no_collection():
        from tilepilot_export.attributes import name_attributes
        from tilepilot_export.inputs import apart, check_inputs, check_outputs, check_second_call
        from tilepilot_export.inputs import inputs_without_values
        from tilepilot_export.kept import kept_inputs
        from tilepilot_export.lazy import with_weights
        from tilepilot_export.memory import built_within_memory
        from tilepilot_export.numbers import deciding_leaves, number_leaves, number_places, other_number
        from tilepilot_export.numbers import other_values, same_form
        from tilepilot_export.plain import encode_plain
        from tilepilot_export.scale import scaled_source
        from tilepilot_export.tracing import export_program
        from tilepilot_export.weights import Weights


def parse_arguments(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", nargs="?")
    parser.add_argument("out", nargs="?")
    parser.add_argument("--serve", default="")
    parser.add_argument("--seed", type=int, default=42)
    parser.add_argument("--serve-compiled", default="", choices=["", "default", "max-autotune"])
    parser.add_argument("--threads", type=int, default=0)
    parser.add_argument("--dtype", default="model", choices=["model", "fp32", "fp16", "bf16"])
    parser.add_argument("--scale", default="")
    parser.add_argument("--graph-only", action="store_true")
    parser.add_argument("--device", default="cpu", choices=["cpu", "cuda"])
    options = parser.parse_args(arguments)
    if not options.serve and not (options.model and (options.out or options.serve_compiled)):
        parser.error("MODEL or OUTDIR is missing")
    return options


def answer_to(options):
    """The exit code and the answer."""
    try:
        read_source(os.path.abspath(options.model))
        import_torch()
        return 0, export_reference(options)
    except ExportError as error:
        return error.code, {"ok": False, "error": error.kind, "message": error.message,
                            "file": os.path.abspath(options.model), "line": error.line, "hint": error.hint}
    except Exception as error:  # ours, or PyTorch's: the caller gets an answer all the same
        return 2, {"ok": False, "error": "export_failed", "file": os.path.abspath(options.model),
                   "message": f"the model cannot be exported: `{type(error).__name__}`: {first_line(error)}",
                   "line": line_in(os.path.abspath(options.model), error), "hint": ""}


def serve(name):
    from tilepilot_export.server import Server
    server = Server(name, os.path.abspath(__file__), main)
    import_torch()
    server.get_ready(lambda arguments: export_reference(parse_arguments(arguments)))
    server.go_on()


def main(arguments=None):
    options = parse_arguments(arguments)
    if options.serve:
        return serve(options.serve)
    if options.serve_compiled:
        return serve_compiled(options)
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    code, answer = answer_to(options)
    answers.write(json.dumps(answer) + "\n")
    answers.flush()
    sys.stdout.flush()
    os._exit(code)  # the model's own threads and exit handlers cannot change the answer


if __name__ == "__main__":
    main()
