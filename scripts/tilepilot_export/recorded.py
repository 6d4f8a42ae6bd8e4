"""What PyTorch leaves out of a graph, and a replay needs."""

import contextlib

import torch


@contextlib.contextmanager
def recorded_contiguous():
    """While it lives, `contiguous()` is in the graph even where the tensor is so already, which PyTorch leaves out: on
    another device or in another type, the operator before it may lay its result out otherwise."""
    kept = torch.Tensor.contiguous

    def contiguous(self, memory_format=torch.contiguous_format):
        return torch.ops.aten.contiguous.default(self, memory_format=memory_format)

    torch.Tensor.contiguous = contiguous
    try:
        yield
    finally:
        torch.Tensor.contiguous = kept


@contextlib.contextmanager
def recorded_data():
    """While it lives, what `forward` does to `tensor.data` is in the graph: reads see the tensor's own memory, and
    assignments write it. PyTorch's own attribute goes past the tracer."""
    own = torch._C.TensorBase.data

    def traced(tensor):
        return type(tensor).__name__ in ("FakeTensor", "FunctionalTensor") or torch._is_functional_tensor(tensor)

    def read(self):
        return self.detach() if traced(self) else own.__get__(self)

    def assign(self, value):
        if traced(self) and self.shape == value.shape and self.dtype == value.dtype:
            self.detach().copy_(value)
        else:
            own.__set__(self, value)

    torch.Tensor.data = property(read, assign)
    try:
        yield
    finally:
        del torch.Tensor.data
