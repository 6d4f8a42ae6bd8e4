"""`--scale`: the same model with smaller sizes, by a change of numbers in its text.

The rule. A size is an integer of at least 32 that stands in an assignment of the module or in `get_inputs` or
`get_init_inputs`, and is an extent of an input: with another number there, the inputs have other shapes. From 1024 on,
extents of weights are sizes too (the width of a layer that no input shows). Each size is multiplied by the scale and
rounded to what the same power of two divides, up to 16, but not below 8. The constructor follows where it shares the name.
The scaled file must build and run, on tensors without memory. If it does not, the sizes are shrunk one after another, each
with all other sizes of the same number if it cannot be alone; less where what was asked for does not run; what cannot be
shrunk stays.
"""

import ast
import fractions

from .errors import ExportError
from .probe import probe

SMALLEST_SIZE, SMALLEST_WIDTH, SMALLEST_RESULT = 32, 1024, 8


def parse_scale(text):
    try:
        factor = fractions.Fraction(text)
    except (ValueError, ZeroDivisionError):
        factor = fractions.Fraction(0)
    if not 0 < factor <= 1:
        raise ExportError("bad_scale", f"`{text}` is no scale", hint="give a fraction up to 1, such as `1/4`")
    return factor


class Site:
    """An integer in the text."""

    def __init__(self, node, name):
        self.line, self.begin, self.end = node.lineno, node.col_offset, node.end_col_offset
        self.value, self.name = node.value, name

    def __str__(self):
        return f"`{self.name}`" if self.name else f"the {self.value} in line {self.line}"


def assignments(statement):
    """(name, value) of each variable: several of `D, H, W = 16, 32, 32`, one of `height = width = 64`."""
    targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
    value = statement.value
    if len(targets) == 1 and isinstance(targets[0], ast.Tuple) and isinstance(value, ast.Tuple):
        if len(targets[0].elts) == len(value.elts):
            return [(ast.unparse(name), part) for name, part in zip(targets[0].elts, value.elts)]
    return [(", ".join(ast.unparse(target) for target in targets), value)]


def find_sites(source):
    sites = []

    def collect(tree, name):
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and type(node.value) is int and node.value >= SMALLEST_SIZE:
                if node.lineno == node.end_lineno:
                    sites.append(Site(node, name))

    for statement in ast.parse(source).body:
        if isinstance(statement, (ast.Assign, ast.AnnAssign)) and statement.value is not None:
            for target, value in assignments(statement):
                collect(value, target)
        elif isinstance(statement, ast.FunctionDef) and statement.name in ("get_inputs", "get_init_inputs"):
            for inner in statement.body:
                collect(inner, "")
    return sites


def substituted(source, values):
    """The text with other numbers; the lines stay where they are."""
    lines = source.encode().split(b"\n")  # columns of `ast` count bytes
    for site, value in sorted(values.items(), key=lambda item: -item[0].begin):
        line = lines[site.line - 1]
        lines[site.line - 1] = line[:site.begin] + str(value).encode() + line[site.end:]
    return b"\n".join(lines).decode()


def scaled_value(value, factor, unit=16):
    """`value * factor`, divisible by the same power of two, up to `unit`."""
    power = min(value & -value, unit)
    parts = round(value * factor / power)
    if power < unit and (value // power) % 2 == 1 and parts % 2 == 0:
        parts += 1 if parts * power < value * factor else -1
    return min(value, max(SMALLEST_RESULT, parts * power, power))


def tries(value, factor):
    """What a size may become, the best first."""
    values = [scaled_value(value, factor)]
    values += [-(-round(value * factor) // unit) * unit for unit in (32, 64)]
    values.append(scaled_value(value, min(factor * 2, 1)))
    return [v for i, v in enumerate(values) if v < value and v not in values[:i]]


class Scaling:
    def __init__(self, path, source, factor):
        self.path, self.source, self.factor = path, source, factor
        self.chosen = {}

    def runs(self, values):
        result = probe(self.path, substituted(self.source, values), run=True)
        return result.ran and not result.has_empty_output

    def extents(self):
        """The sites that are sizes."""
        base = probe(self.path, self.source)
        found = []
        for site in find_sites(self.source):
            value = scaled_value(site.value, self.factor)
            if value == site.value:
                continue
            changed = probe(self.path, substituted(self.source, {site: value}))
            is_extent = changed.inputs is not None and changed.inputs != base.inputs
            is_width = (site.value >= SMALLEST_WIDTH and base.weights and changed.weights
                        and len(changed.weights) == len(base.weights) and changed.weights != base.weights)
            if is_extent or is_width:
                found.append(site)
        return found

    def shrink_one_by_one(self, sites):
        for site in sorted(sites, key=lambda site: -site.value):
            if site in self.chosen:
                continue
            equal = [other for other in sites if other.value == site.value and other not in self.chosen]
            for group in [[site]] + ([equal] if len(equal) > 1 else []):
                if self.shrink_group(group):
                    break

    def shrink_group(self, group):
        for value in tries(group[0].value, self.factor):
            values = {**self.chosen, **{site: value for site in group}}
            if self.runs(values):
                self.chosen = values
                return True
        return False

    def run(self):
        sites = self.extents()
        together = {site: scaled_value(site.value, self.factor) for site in sites}
        if together and self.runs(together):
            self.chosen = together
        else:
            self.shrink_one_by_one(sites)
        if not self.chosen:
            raise ExportError("cannot_scale", "no size of this model can be made smaller", hint="leave `--scale` out, or "
                              "write the sizes of the inputs as integers of at least 32 outside of the class")
        return substituted(self.source, self.chosen), [
            {"name": site.name, "line": site.line, "from": site.value, "to": value}
            for site, value in sorted(self.chosen.items(), key=lambda item: (item[0].line, item[0].begin))]


def scaled_source(path, source, text):
    """(the text with smaller sizes, what was changed)"""
    factor = parse_scale(text)
    return (source, []) if factor == 1 else Scaling(path, source, factor).run()
