import torch

torch.manual_seed(0)
for tensor in (
        torch.tensor(3), torch.tensor(2.5), torch.tensor([1.0, 2.0, -3.0]), torch.tensor([1.5, 200.25, -3.0]),
        torch.tensor([[1, 2], [30, 4]]), torch.tensor([True, False]), torch.arange(30), torch.arange(2000),
        torch.arange(24.0).reshape(2, 3, 4), torch.randn(3, 5), torch.randn(2, 30), torch.tensor([1e-5, 1.0]),
        torch.tensor([1e9, 2e9]), torch.tensor([1.0, 2000.0]), torch.tensor([float("nan"), 1.0, float("inf")]),
        torch.tensor([float("nan"), 1.5, -float("inf")]), torch.zeros(0), torch.zeros(2, 0), torch.ones(2).half(),
        torch.ones(2, dtype=torch.float64) / 3, torch.randn(60, 60), torch.randn(4, 20, 20), torch.ones(3).int(),
        torch.randn(3).bfloat16(), torch.zeros(3), torch.ones(2, requires_grad=True), torch.zeros(2, 3, 4),
        torch.ones(2, 0, dtype=torch.int32), torch.arange(5, dtype=torch.uint8), torch.randn(1100),
        torch.ones(12, dtype=torch.float64) * 1e-7):
    print(tensor)
    print(f"{tensor.sum()} {tuple(tensor.shape)}" if tensor.dtype != torch.bool else repr(tensor))
print([torch.ones(1), {"a": torch.tensor(2)}])
