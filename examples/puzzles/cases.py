"""Inputs of the puzzles and the results that are right, by torch in float64. Some inputs are chosen to show usual mistakes."""
import torch

EXACT = 0.0
FLOAT32 = 1e-5  # room for another order of additions
FLOAT16 = 2e-3  # room for results that are rounded to float16


class Case:
    """One call of a kernel: the sizes it is compiled for, its inputs, and the result that is right."""

    def __init__(self, sizes, inputs, result, expected, tolerance, dtype=torch.float32):
        self.sizes = sizes  # by name
        self.inputs = inputs
        self.result = result  # the name of the last parameter
        self.expected = expected.double()
        self.tolerance = tolerance  # relative to the largest expected value
        self.dtype = dtype


def copy_cases():
    torch.manual_seed(1)
    a = torch.randn(1024)
    return [Case({"N": 1024}, [a], "B", a, EXACT)]


def add_cases():
    torch.manual_seed(2)
    cases = []
    for size in (1000, 100):
        a, b = torch.randn(size), torch.randn(size)
        cases.append(Case({"N": size}, [a, b], "C", a + b, EXACT))
    return cases


def outer_sum_cases():
    torch.manual_seed(3)
    a, b = torch.randn(70), torch.randn(100)
    return [Case({"M": 70, "N": 100}, [a, b], "C", a[:, None] + b[None, :], EXACT)]


def row_sum_cases():
    torch.manual_seed(4)
    # All of one sign: sums are so large that float16 shows.
    a = (torch.rand(20, 700) + 0.5).half()
    return [Case({"M": 20, "N": 700}, [a], "B", a.double().sum(1), FLOAT32)]


def softmax_cases():
    torch.manual_seed(5)
    # Rows of large and of very negative values: exp overflows in the one, and 0 is the maximum that is wrong in the other.
    a = torch.randn(20, 150) + torch.linspace(-300, 300, 20)[:, None]
    # Values that grow along the row: each tile brings a larger maximum.
    growing = torch.randn(10, 200) + torch.linspace(0, 20, 200)[None, :]
    return [Case({"M": 20, "N": 150}, [a], "B", torch.softmax(a.double(), 1), FLOAT32),
            Case({"M": 10, "N": 200}, [growing], "B", torch.softmax(growing.double(), 1), FLOAT32)]


def matmul_cases():
    torch.manual_seed(6)
    # All of one sign, as in row_sum_cases.
    a, b = torch.rand(64, 256).half(), torch.rand(256, 96).half()
    return [Case({"M": 64, "N": 96, "K": 256}, [a, b], "C", a.double() @ b.double(), FLOAT32)]


def linear_relu_cases():
    torch.manual_seed(7)
    x, w, b = torch.randn(50, 100).half(), torch.randn(70, 100).half(), torch.randn(70)
    right = torch.relu(x.double() @ w.double().T + b.double())
    return [Case({"M": 50, "N": 70, "K": 100}, [x, w, b], "Y", right, FLOAT16, torch.float16)]


def dequantise_cases():
    torch.manual_seed(9)
    rows, columns, depth = 32, 64, 96
    x = torch.randn(rows, depth).half()
    q = torch.randint(0, 16, (columns, depth))
    s = (torch.rand(columns, depth // 32) * 0.1 + 0.01).half()
    packed = (q[:, 0::2] + q[:, 1::2] * 16).to(torch.uint8)
    # The kernel's tile holds float16, and so does this.
    w = ((q - 8).double() * s.double().repeat_interleave(32, 1)).half()
    return [Case({"M": rows, "N": columns, "K": depth}, [x, packed, s], "Y", x.double() @ w.double().T, FLOAT16)]


def attention_cases():
    torch.manual_seed(10)
    heads, length, width = 2, 80, 32
    # Large queries: exponentials without the maximum overflow float16.
    q, k, v = (torch.randn(heads, length, width) * 6).half(), torch.randn(heads, length, width).half(), \
        torch.randn(heads, length, width).half()
    scores = q.double() @ k.double().transpose(1, 2) / width ** 0.5
    later = torch.ones(length, length).triu(1).bool()
    right = torch.softmax(scores.masked_fill(later, float("-inf")), -1) @ v.double()
    return [Case({"H": heads, "S": length}, [q, k, v], "O", right, FLOAT16, torch.float16)]


PUZZLES = {
    1: ("copy", copy_cases),
    2: ("add with a tail", add_cases),
    3: ("outer sum", outer_sum_cases),
    4: ("sum of rows", row_sum_cases),
    5: ("softmax", softmax_cases),
    6: ("product", matmul_cases),
    7: ("linear layer", linear_relu_cases),
    8: ("pipelined product", matmul_cases),
    9: ("weights of 4 bits", dequantise_cases),
    10: ("attention", attention_cases),
}
ASYNCHRONOUS = [8]  # where a forgotten wait shows only on a GPU or in its emulator
