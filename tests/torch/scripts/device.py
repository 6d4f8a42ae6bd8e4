# What PyTorch says where a GPU is; here the processor stands in for it.
import torch
import torch.backends
from torch import version

print(torch.cuda.is_available(), torch.cuda.device_count(), torch.cuda.current_device())
print(torch.cuda.get_device_capability(), torch.cuda.get_device_capability(torch.device("cuda")) >= (8, 9))
torch.set_num_threads(2)
print(torch.cuda.get_device_properties(0).multi_processor_count, torch.get_num_threads())
print(torch.cuda.get_device_properties("cuda:0"), torch.cuda.get_device_name())
torch.cuda.set_device("cuda:0")
try:
    torch.cuda.set_device(3)
except RuntimeError as error:
    print(error)

start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
start.record()
with torch.cuda.stream(torch.cuda.Stream()):
    x = torch.ones(3, device="cuda")
end.record()
torch.cuda.synchronize()
print(0 <= start.elapsed_time(end) < 60000, end.query())
try:
    torch.cuda.Event().elapsed_time(end)
except ValueError as error:
    print(error)

print(version.hip, torch.version.cuda, torch.__getattribute__("float16"), torch.__getattribute__("relu")(-x))


@torch.compile
def twice(x):
    return x * 2


@torch.compile(dynamic=True)
def thrice(x):
    return x * 3


print(twice(x), thrice(x), torch.compile(thrice)(x))
