"""Where numbers among the inputs stand in the exported graph, and what others there could be."""


def number_leaves(leaves):
    return [i for i, leaf in enumerate(leaves) if type(leaf) in (int, float)]


def other_number(number):
    if type(number) is int:
        return number + 1
    return number * 1.25 if number else 0.5


def deciding_leaves(leaves):
    return [i for i, leaf in enumerate(leaves) if type(leaf) in (bool, int, float)]


def other_values(value):
    if type(value) is bool:
        return [not value]
    return [value + 1, value - 1] if type(value) is int else [other_number(value)]


def form(graph, argument):
    """An argument with the element types and sizes of tensors in the place of their values."""
    if isinstance(argument, list):
        return [form(graph, item) for item in argument]
    if isinstance(argument, dict) and "dict" in argument:
        return [[key, form(graph, item)] for key, item in argument["dict"]]
    if isinstance(argument, dict) and "value" in argument:
        value = graph["values"][argument["value"]]
        return [value.get("dtype"), value.get("shape")]
    return argument


def same_form(one, other):
    """Whether two graphs take and give tensors of the same types and sizes."""
    inputs = [[form(graph, {"value": id}) for id in graph["inputs"]] for graph in (one, other)]
    return inputs[0] == inputs[1] and form(one, one["outputs"]) == form(other, other["outputs"])


def differences(one, other, path):
    """Yields (path, value in one, value in other); values of unlike shape stand for all that they hold."""
    if isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        for i, (a, b) in enumerate(zip(one, other)):
            yield from differences(a, b, path + [i])
    elif one != other or type(one) is not type(other):
        yield path, one, other


def number_places(forward, other_forward, number):
    """[{"node", "keyword", "path"}] of where the graph holds a number as it is; None if the number decides anything else,
    a size or a product with another one. `other_forward`: with other_number(number)."""
    nodes, other_nodes = forward["nodes"], other_forward["nodes"]
    if [node["op"] for node in nodes] != [node["op"] for node in other_nodes]:
        return None
    if forward["values"] != other_forward["values"] or forward["outputs"] != other_forward["outputs"]:
        return None
    places = []
    for index, (node, other) in enumerate(zip(nodes, other_nodes)):
        values = [value for _, value in node["kwargs"]], [value for _, value in other["kwargs"]]
        for keyword, one, two in ((False, node["args"], other["args"]), (True, *values)):
            for path, before, after in differences(one, two, []):
                if (before, after) != (number, other_number(number)):
                    return None
                places.append({"node": index, "keyword": keyword, "path": path})
    return places
