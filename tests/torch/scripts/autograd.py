import torch
from torch.autograd import Function


class Scaled(Function):
    """Its gradient is chosen to be wrong by a factor, so that one can see whose it is."""

    @staticmethod
    def forward(ctx, x, factor, y=None):
        ctx.save_for_backward(x, y)
        ctx.factor = factor
        print("forward records", torch.is_grad_enabled(), ctx.needs_input_grad)
        return x * factor, x.argmax()

    @staticmethod
    def backward(ctx, gradient, _):
        x, y = ctx.saved_tensors
        print("backward gets", gradient.tolist(), x.tolist(), y is None)
        return gradient * ctx.factor * 10, None, None


x = torch.tensor([1.0, -2.0, 3.0], requires_grad=True)
print(x.requires_grad, x.is_leaf, x.grad, x.grad_fn)
y = (x * x).sum()
print(y.requires_grad, y.is_leaf, torch.is_grad_enabled())
y.backward()
print(x.grad.tolist())
(x * 2).backward(torch.tensor([1.0, 0.0, 1.0]))
print(x.grad.tolist())
x.grad = None
print(x.grad)

scaled, where = Scaled.apply(x, 3.0)
print(scaled.tolist(), where.item(), scaled.requires_grad, where.requires_grad)
(scaled * 2).sum().backward()
print(x.grad.tolist())
x.grad.zero_()
with torch.no_grad():
    print(Scaled.apply(x, 2.0)[0].requires_grad, (x * 2).requires_grad)
    with torch.enable_grad():
        print((x * 2).requires_grad)

w = torch.ones(2, 3).requires_grad_()
out = torch.einsum("ij,j->i", w, x)
print([gradient.tolist() for gradient in torch.autograd.grad(out.sum(), [w, x])])
print(torch.autograd.grad(out.sum() if out.grad_fn is None else torch.einsum("ij,j->i", w, x).sum(), x)[0].tolist())
print(out.detach().requires_grad, out.detach().clone().requires_grad_().is_leaf)


@torch.no_grad()
def quiet(x):
    return x * 2


@torch.inference_mode()
def quieter(x):
    return x * 2


print(quiet(x).requires_grad, quieter(x).requires_grad)
torch.set_grad_enabled(False)
print((x * 2).requires_grad)
torch.set_grad_enabled(True)
with torch.set_grad_enabled(False):
    print((x * 2).requires_grad)
print((x * 2).requires_grad)

model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.ReLU(), torch.nn.Linear(4, 1))
torch.nn.init.constant_(model[0].weight, 0.5)
torch.nn.init.constant_(model[0].bias, 0.25)
torch.nn.init.ones_(model[2].weight)
model(torch.ones(2, 3)).sum().backward()
print([parameter.grad.tolist() for parameter in model.parameters()])
model = model.double()
print(model[0].weight.is_leaf, model[0].weight.requires_grad)


class Two(Function):
    @staticmethod
    def forward(a, b):
        return a * b

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx, gradient):
        a, b = ctx.saved_tensors
        return gradient * b, gradient * a


a, b = torch.tensor(2.0, requires_grad=True), torch.tensor(5.0, requires_grad=True)
Two.apply(a, Two.apply(a, b)).backward()
print(a.grad.item(), b.grad.item())
v = torch.zeros(3, requires_grad=True)
z = v.clone()
z[1] = x[0] * 4
z.retain_grad()
z.sum().backward()
print(v.grad.tolist(), z.grad.tolist())
for trouble in (lambda: x.backward(), lambda: torch.ones(1).sum().backward(), lambda: out.sum().backward()):
    try:
        trouble()
        print("fine")
    except RuntimeError as error:
        print("RuntimeError")

# Outputs that share a graph are walked through once, together.
x = torch.tensor([1.0, 2.0], requires_grad=True)
shared = x * x
torch.autograd.backward([shared.sum(), (shared * 3).sum()])
print(x.grad.tolist())
shared = x * x
torch.autograd.backward([shared, shared.sum()], [torch.tensor([1.0, 10.0]), None])
print(x.grad.tolist())
torch.autograd.backward((x * x).sum(), retain_graph=True)
print(x.grad.tolist())
