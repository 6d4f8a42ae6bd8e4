import torch
import torch.random

torch.random.manual_seed(3)
first = torch.rand(2).tolist()
with torch.random.fork_rng():
    torch.manual_seed(9)
    inside = torch.rand(2).tolist()
with torch.random.fork_rng(devices=[0], enabled=False):
    second = torch.rand(2).tolist()
torch.cuda.manual_seed_all(3)
torch.manual_seed(3)
print(first == torch.rand(2).tolist(), second == torch.rand(2).tolist(), inside != first, torch.initial_seed())
state = torch.get_rng_state()
third = torch.rand(2).tolist()
torch.set_rng_state(state)
print(third == torch.rand(2).tolist())

uniform = torch.distributions.uniform.Uniform(0.0, 4.0).sample((2, 3))
print(tuple(uniform.shape), bool(((uniform >= 0) & (uniform < 4)).all()))
print(torch.nonzero(torch.tensor([[0, 1], [2, 0]]), as_tuple=False).tolist())
print([index.tolist() for index in torch.tensor([[0, 1], [2, 0]]).nonzero(as_tuple=True)])
print(isinstance(torch.float16, torch.dtype), torch.tensor(range(2, 5)).tolist())
