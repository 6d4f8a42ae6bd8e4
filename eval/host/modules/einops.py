# `einops`: rearrange, reduce, repeat and einsum, on torch's own operators, so that gradients pass through.
import torch

ELLIPSIS = "..."


class EinopsError(RuntimeError):
    pass


def tokens_of(side):
    return side.replace("(", " ( ").replace(")", " ) ").replace(ELLIPSIS, f" {ELLIPSIS} ").split()


def parse_side(side, free_dims=0):
    """A list of groups of axis names; `...` becomes as many axes as are left over, `1` an empty group."""
    groups, open_group = [], None
    for token in tokens_of(side):
        if token == "(":
            if open_group is not None:
                raise EinopsError("Axis composition is one-level (brackets inside brackets not allowed)")
            open_group = []
        elif token == ")":
            if open_group is None:
                raise EinopsError("Brackets are not balanced")
            groups.append(open_group)
            open_group = None
        else:
            names = [f"{ELLIPSIS}{i}" for i in range(free_dims)] if token == ELLIPSIS else \
                [] if token == "1" else [token]
            if open_group is not None:
                open_group.extend(names)
            elif token == ELLIPSIS:
                groups.extend([name] for name in names)
            else:
                groups.append(names)
    if open_group is not None:
        raise EinopsError("Brackets are not balanced")
    names = [name for group in groups for name in group]
    if len(names) != len(set(names)):
        raise EinopsError(f"an axis appears twice in `{side.strip()}`")
    return groups


def product(values):
    result = 1
    for value in values:
        result *= value
    return result


def fill_sizes(group, extent, sizes):
    """Finds the size of the one axis of the group that is not known yet."""
    unknown = [name for name in group if name not in sizes]
    known = product(sizes[name] for name in group if name in sizes)
    if len(unknown) > 1:
        raise EinopsError(f"Could not infer sizes for {set(unknown)}")
    if (extent % known if unknown else extent != known):
        raise EinopsError(f"Shape mismatch, can't divide axis of length {extent} in chunks of {known}"
                          if unknown else f"Shape mismatch, {extent} != {known}")
    if unknown:
        sizes[unknown[0]] = extent // known


class Transform:
    """A pattern, matched with the shape of a tensor."""

    def __init__(self, pattern, shape, lengths):
        if pattern.count("->") != 1:
            raise EinopsError(f"the pattern `{pattern}` needs one `->`")
        left, right = pattern.split("->")
        spelt = len(parse_side(left))
        free = len(shape) - spelt
        if free < 0 or free > 0 and ELLIPSIS not in left:
            raise EinopsError(f"Wrong shape: expected {spelt} dims. Received {len(shape)}-dim tensor.")
        self.left, self.right = parse_side(left, free), parse_side(right, free)
        self.sizes = dict(lengths)
        for group, extent in zip(self.left, shape):
            fill_sizes(group, extent, self.sizes)
        self.inputs = [name for group in self.left for name in group]
        self.outputs = [name for group in self.right for name in group]
        unused = set(lengths) - set(self.inputs) - set(self.outputs)
        if unused:
            raise EinopsError(f"Identifiers {unused} are not in the pattern")

    def split(self, tensor):
        return tensor.reshape([self.sizes[name] for name in self.inputs])

    def order(self, tensor, names):
        """`names` are the axes that the tensor has; new ones of the right side are added by repeating."""
        tensor = tensor.permute([names.index(name) for name in self.outputs if name in names])
        for position, name in enumerate(self.outputs):
            if name not in names:
                if name not in self.sizes:
                    raise EinopsError(f"the length of the new axis `{name}` is not given")
                tensor = tensor.unsqueeze(position)
        return tensor.expand([self.sizes[name] for name in self.outputs])

    def join(self, tensor):
        return tensor.reshape([product(self.sizes[name] for name in group) for group in self.right])


def stacked(tensor):
    return torch.stack(tuple(tensor)) if isinstance(tensor, (list, tuple)) else tensor


def rearrange(tensor, pattern, **axes_lengths):
    tensor = stacked(tensor)
    transform = Transform(pattern, tensor.shape, axes_lengths)
    difference = set(transform.inputs) ^ set(transform.outputs)
    if difference:
        raise EinopsError(f"Identifiers only on one side of expression (should be on both): {difference}")
    return transform.join(transform.order(transform.split(tensor), transform.inputs))


def repeat(tensor, pattern, **axes_lengths):
    tensor = stacked(tensor)
    transform = Transform(pattern, tensor.shape, axes_lengths)
    lost = set(transform.inputs) - set(transform.outputs)
    if lost:
        raise EinopsError(f"Unexpected identifiers on the left side of repeat: {lost}")
    return transform.join(transform.order(transform.split(tensor), transform.inputs))


REDUCTIONS = {
    "sum": lambda tensor, dims: tensor.sum(dims),
    "mean": lambda tensor, dims: tensor.mean(dims),
    "max": lambda tensor, dims: tensor.amax(dims),
    "min": lambda tensor, dims: tensor.amin(dims),
    "any": lambda tensor, dims: tensor.any(dims),
    "all": lambda tensor, dims: tensor.all(dims),
}


def multiplied(tensor, dims):
    for dim in sorted(dims, reverse=True):
        tensor = tensor.prod(dim)
    return tensor


REDUCTIONS["prod"] = multiplied


def reduce(tensor, pattern, reduction, **axes_lengths):
    tensor = stacked(tensor)
    transform = Transform(pattern, tensor.shape, axes_lengths)
    new = set(transform.outputs) - set(transform.inputs)
    if new:
        raise EinopsError(f"Unexpected identifiers on the right side of reduce {reduction}: {new}")
    dims = [i for i, name in enumerate(transform.inputs) if name not in transform.outputs]
    names = [name for name in transform.inputs if name in transform.outputs]
    split = transform.split(tensor)
    if dims:
        if not callable(reduction) and reduction not in REDUCTIONS:
            raise EinopsError(f"Unknown reduction {reduction}. Expect one of {sorted(REDUCTIONS)}.")
        split = reduction(split, tuple(dims)) if callable(reduction) else REDUCTIONS[reduction](split, dims)
    return transform.join(transform.order(split, names))


LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"


def einsum(*tensors_and_pattern):
    """Axes have names of any length here: `einsum(q, k, "batch i d, batch j d -> batch i j")`."""
    *tensors, pattern = tensors_and_pattern
    if not isinstance(pattern, str):
        raise TypeError("the last argument of `einops.einsum` must be the pattern, a string")
    letters = {ELLIPSIS: ELLIPSIS}
    compact = []
    for word in pattern.replace("->", " -> ").replace(",", " , ").replace(ELLIPSIS, f" {ELLIPSIS} ").split():
        if word in ("->", ","):
            compact.append(word)
            continue
        if "(" in word or ")" in word:
            raise NotImplementedError("Shape rearrangement is not yet supported in einsum.")
        if word not in letters:
            letters[word] = LETTERS[len(letters) - 1]
        compact.append(letters[word])
    return torch.einsum("".join(compact), *tensors)


def parse_shape(x, pattern):
    """The extents of the axes that the pattern names, `_` left out."""
    names = pattern.split()
    if len(names) != len(x.shape):
        raise EinopsError(f"Can't parse shape with different number of dimensions: {pattern} {tuple(x.shape)}")
    return {name: extent for name, extent in zip(names, x.shape) if name != "_"}
