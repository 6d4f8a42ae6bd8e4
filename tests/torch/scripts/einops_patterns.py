import torch
from einops import einsum, parse_shape, rearrange, reduce, repeat

x = torch.arange(24.0).reshape(2, 3, 4)


def same(actual, expected):
    assert actual.shape == expected.shape, (actual.shape, expected.shape)
    assert torch.equal(actual, expected)


same(rearrange(x, "a b c -> c a b"), x.permute(2, 0, 1))
same(rearrange(x, "a b c -> a (b c)"), x.reshape(2, 12))
same(rearrange(x, "a b c -> (c a) b"), x.permute(2, 0, 1).reshape(8, 3))
same(rearrange(x, "a b (c d) -> a d b c", d=2), x.reshape(2, 3, 2, 2).permute(0, 3, 1, 2))
same(rearrange(x, "... c -> c ..."), x.permute(2, 0, 1))
same(rearrange(x, "a ... -> a (...)"), x.reshape(2, 12))
same(rearrange(x, "a b c -> a 1 b c"), x.unsqueeze(1))
same(rearrange(x[:, :1], "a 1 c -> c a"), x[:, 0].t())
same(rearrange([x, x + 1], "n a b c -> a n b c"), torch.stack([x, x + 1], 1))
same(rearrange(torch.arange(6), "(a b) -> b a", a=2), torch.arange(6).reshape(2, 3).t())
same(repeat(x, "a b c -> a n b c", n=3), x[:, None].expand(2, 3, 3, 4))
same(repeat(x, "a b c -> a (b n) c", n=2), x.repeat_interleave(2, 1))
same(repeat(x, "a b c -> a (n b) c", n=2), torch.cat([x, x], 1))
same(repeat(torch.tensor(3), "-> n m", n=2, m=2), torch.full((2, 2), 3))
same(reduce(x, "a b c -> a c", "sum"), x.sum(1))
same(reduce(x, "a b (c d) -> c a", "mean", d=2), x.reshape(2, 3, 2, 2).mean((1, 3)).t())
same(reduce(x, "a b c -> ", "max"), x.max())
same(reduce(x, "... c -> ...", "min"), x.amin(2))
same(reduce(x + 1, "a b c -> b", "prod"), (x + 1).prod(2).prod(0))
same(reduce(x, "a b c -> a 1 c", "sum"), x.sum(1, keepdim=True))
q, k = torch.randn(2, 5, 8), torch.randn(2, 6, 8)
same(einsum(q, k, "batch i dim, batch j dim -> batch i j"), torch.einsum("bid,bjd->bij", q, k))
same(einsum(q, "batch i dim -> dim batch"), torch.einsum("abc->ca", q))
print(parse_shape(x, "a _ c"))
w = torch.ones(2, 6, requires_grad=True)
rearrange(w, "a (b c) -> c b a", b=2)[0].sum().backward()
print(w.grad.tolist())

for wrong in (
        lambda: rearrange(x, "a b -> b a"),
        lambda: rearrange(x, "a b c -> a b"),
        lambda: rearrange(x, "a b (c d) -> a b c d"),
        lambda: rearrange(x, "a b (c d) -> a b c d", d=3),
        lambda: rearrange(x, "a b c -> a b c", e=3),
        lambda: rearrange(x, "a a c -> a c"),
        lambda: rearrange(x, "a (b c -> a b c"),
        lambda: rearrange(x, "a b c"),
        lambda: repeat(x, "a b c -> a b c n"),
        lambda: reduce(x, "a b c -> a", "mode"),
):
    try:
        wrong()
        print("fine")
    except RuntimeError as error:
        print(error)
