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
