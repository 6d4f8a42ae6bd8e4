# `torch.testing` for scripts: assert_close as PyTorch defines it, in its words. Left out against PyTorch: quantized and
# sparse tensors.
import math

import torch

# rtol and atol by dtype; every other dtype must be equal.
TOLERANCES = {
    torch.float16: (1e-3, 1e-5),
    torch.bfloat16: (1.6e-2, 1e-5),
    torch.float32: (1.3e-6, 1e-5),
    torch.float64: (1e-7, 1e-7),
    torch.complex64: (1.3e-6, 1e-5),
    torch.complex128: (1e-7, 1e-7),
}
NUMBER_DTYPES = {int: torch.int64, float: torch.float64}
UNSIGNED = (torch.uint16, torch.uint32, torch.uint64)


class Mismatch(Exception):
    """What assert_close will raise, and where in nested containers it was found."""

    def __init__(self, kind, message, path=()):
        super().__init__(message)
        self.kind = kind
        self.message = message
        self.path = path

    def error(self, msg):
        message = self.message
        if self.path:
            message += f"\n\nThe failure occurred for item {''.join(str([item]) for item in self.path)}"
        if msg is None:
            return self.kind(message)
        return self.kind(msg if isinstance(msg, str) else msg(message))


class Rules:
    """The options of one assert_close."""

    def __init__(self, rtol, atol, equal_nan, check_device, check_dtype, check_layout, check_stride):
        self.rtol, self.atol = rtol, atol
        self.equal_nan = equal_nan
        self.check_device, self.check_dtype = check_device, check_dtype
        self.check_layout, self.check_stride = check_layout, check_stride

    def tolerances(self, first, second):
        if (self.rtol is None) != (self.atol is None):
            missing = "rtol" if self.rtol is None else "atol"
            raise Mismatch(ValueError,
                           f"Both 'rtol' and 'atol' must be either specified or omitted, but got no {missing}.")
        if self.rtol is not None:
            return self.rtol, self.atol
        pairs = [TOLERANCES.get(dtype, (0.0, 0.0)) for dtype in (first, second)]
        return max(pair[0] for pair in pairs), max(pair[1] for pair in pairs)


def mismatch_text(subject, facts, differences, rtol, atol):
    """`differences`: the absolute and the relative one, each with its index or None."""
    exact = rtol == 0 and atol == 0
    lines = [f"{subject} are not {'equal' if exact else 'close'}!", "", facts]
    for name, (difference, index), allowed in zip(("absolute", "relative"), differences, (atol, rtol)):
        where = f"{name.title()} difference: {difference}" if index is None else \
            f"Greatest {name} difference: {difference} at index {index}"
        lines.append(where if exact else f"{where} (up to {allowed} allowed)")
    return "\n".join(lines)


def scalar_text(actual, expected, rtol, atol):
    difference = abs(actual - expected)
    relative = float("inf") if expected == 0 else difference / abs(expected)
    return mismatch_text("Scalars", f"Expected {expected} but got {actual}.", ((difference, None), (relative, None)),
                         rtol, atol)


def index_of(flat, shape):
    index = []
    for size in reversed(shape):
        index.append(flat % size)
        flat //= size
    return tuple(reversed(index))


def greatest(differences, matches):
    value, flat = torch.max(torch.where(matches.flatten(), torch.zeros_like(differences), differences), 0)
    return value.item(), index_of(int(flat), matches.shape)


def tensor_text(actual, expected, matches, rtol, atol):
    total = matches.numel()
    wrong = total - int(torch.sum(matches))
    facts = f"Mismatched elements: {wrong} / {total} ({wrong / total:.1%})"
    if actual.dtype.is_floating_point and actual.dtype.itemsize == 1:
        first = tuple(torch.nonzero(~matches)[0].tolist())
        return f"Tensor-likes are not 'equal'!\n\n{facts}\nThe first mismatched element is at index {first}."
    actual, expected = actual.flatten(), expected.flatten()
    if not actual.dtype.is_floating_point and not actual.dtype.is_complex:
        actual, expected = actual.to(torch.int64), expected.to(torch.int64)
    absolute = torch.abs(actual - expected)
    relative = absolute / torch.abs(expected)
    return mismatch_text("Tensor-likes", facts, (greatest(absolute, matches), greatest(relative, matches)), rtol, atol)


def compare_attributes(actual, expected, rules):
    checks = (
        ("shape", True, actual.shape, expected.shape),
        ("layout", rules.check_layout, actual.layout, expected.layout),
        ("stride()", rules.check_stride, actual.stride(), expected.stride()),
        ("device", rules.check_device, actual.device, expected.device),
        ("dtype", rules.check_dtype, actual.dtype, expected.dtype),
    )
    for name, wanted, first, second in checks:
        if wanted and first != second:
            if name == "shape":
                first, second = f"torch.Size({list(first)})", f"torch.Size({list(second)})"
            raise Mismatch(AssertionError, f"The values for attribute '{name}' do not match: {first} != {second}.")


def compare_tensors(actual, expected, rules):
    rtol, atol = rules.tolerances(actual.dtype, expected.dtype)
    compare_attributes(actual, expected, rules)
    actual, expected = actual.detach(), expected.detach()
    if actual.dtype != expected.dtype:
        wider = [torch.int64 if each.dtype in UNSIGNED else each.dtype for each in (actual, expected)]
        dtype = torch.promote_types(*wider)
        actual, expected = actual.to(dtype), expected.to(dtype)
    if actual.dtype.is_floating_point and actual.dtype.itemsize == 1 and (rtol != 0 or atol != 0):
        raise Mismatch(AssertionError,
                       f"Rtol={rtol} and atol={atol} are not supported for bitwise comparison of low dimensional "
                       "floats. Please use rtol=0.0 and atol=0.0.")
    matches = torch.isclose(actual, expected, rtol=rtol, atol=atol, equal_nan=rules.equal_nan)
    if torch.all(matches):
        return
    if actual.dim() == 0:
        raise Mismatch(AssertionError, scalar_text(actual.item(), expected.item(), rtol, atol))
    raise Mismatch(AssertionError, tensor_text(actual, expected, matches, rtol, atol))


def compare_numbers(actual, expected, rules):
    rtol, atol = rules.tolerances(NUMBER_DTYPES[type(actual)], NUMBER_DTYPES[type(expected)])
    if rules.check_dtype and type(actual) is not type(expected):
        raise Mismatch(AssertionError, f"The (d)types do not match: {type(actual)} != {type(expected)}.")
    if actual == expected or rules.equal_nan and math.isnan(actual) and math.isnan(expected):
        return
    difference = abs(actual - expected)
    if not (math.isfinite(difference) and difference <= atol + rtol * abs(expected)):
        raise Mismatch(AssertionError, scalar_text(actual, expected, rtol, atol))


def compare_leaves(actual, expected, rules):
    if actual is None or expected is None:
        if actual is not expected:
            raise Mismatch(AssertionError, f"None mismatch: {actual} is not {expected}")
    elif isinstance(actual, bool) and isinstance(expected, bool):
        if actual is not expected:
            raise Mismatch(AssertionError, f"Booleans mismatch: {actual} is not {expected}")
    elif type(actual) in NUMBER_DTYPES and type(expected) in NUMBER_DTYPES:
        compare_numbers(actual, expected, rules)
    elif isinstance(actual, torch.Tensor) and isinstance(expected, torch.Tensor):
        compare_tensors(actual, expected, rules)
    else:
        raise Mismatch(TypeError,
                       f"No comparison pair was able to handle inputs of type {type(actual)} and {type(expected)}.")


def is_sequence(value):
    return isinstance(value, (list, tuple))


def pairs_of(actual, expected, path):
    """The leaves of two containers of one structure, each with the way to it."""
    if is_sequence(actual) and is_sequence(expected):
        if len(actual) != len(expected):
            raise Mismatch(AssertionError,
                           f"The length of the sequences mismatch: {len(actual)} != {len(expected)}", path)
        steps = range(len(actual))
    elif isinstance(actual, dict) and isinstance(expected, dict):
        missing, additional = set(expected) - set(actual), set(actual) - set(expected)
        if missing or additional:
            raise Mismatch(AssertionError, "The keys of the mappings do not match:\n"
                           f"Missing keys in the actual mapping: {sorted(missing)}\n"
                           f"Additional keys in the actual mapping: {sorted(additional)}", path)
        steps = sorted(actual)
    else:
        return [(actual, expected, path)]
    return [pair for step in steps for pair in pairs_of(actual[step], expected[step], (*path, step))]


def first_mismatch(actual, expected, rules):
    try:
        pairs = pairs_of(actual, expected, ())
    except Mismatch as mismatch:
        return mismatch
    for first, second, path in pairs:
        try:
            compare_leaves(first, second, rules)
        except Mismatch as mismatch:
            mismatch.path = path
            return mismatch
    return None


def assert_close(actual, expected, *, allow_subclasses=True, rtol=None, atol=None, equal_nan=False, check_device=True,
                 check_dtype=True, check_layout=True, check_stride=False, msg=None):
    rules = Rules(rtol, atol, equal_nan, check_device, check_dtype, check_layout, check_stride)
    mismatch = first_mismatch(actual, expected, rules)
    if mismatch is not None:
        raise mismatch.error(msg)
