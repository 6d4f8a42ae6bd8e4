# Attention of the libraries that PyTorch brings, as calls of their operators: cuDNN's and FlashAttention's.
import torch
import torch.nn.functional as F

aten = torch.ops.aten


def usable(calls):
    """Those of the named calls that run here on such tensors."""
    found = []
    for name, call in calls:
        try:
            call()
        except (RuntimeError, NotImplementedError):
            continue
        found.append((name, call))
    return found


def attention(Q, K, V, causal):
    """Named calls that return the output and the logarithms of sums; [batch, heads, sequence, dim]."""
    found = usable([
        ("cuDNN", lambda: aten._scaled_dot_product_cudnn_attention(Q, K, V, None, True, 0.0, causal)),
        ("flash", lambda: aten._scaled_dot_product_flash_attention(Q, K, V, 0.0, causal)),
    ])
    gqa = Q.shape[1] != K.shape[1]
    choice = lambda: (F.scaled_dot_product_attention(Q, K, V, is_causal=causal, enable_gqa=gqa), None)
    return found or [("torch", choice)]


def attention_varlen(Q, K, V, starts, longest, causal):
    """Named calls that return the output first; [all sequences, heads, dim]."""
    of_lengths = (starts, starts, longest, longest)
    found = usable([
        ("cuDNN", lambda: aten._cudnn_attention_forward(Q, K, V, None, *of_lengths, False, 0.0, causal)),
        ("flash", lambda: aten._flash_attention_forward(Q, K, V, *of_lengths, 0.0, causal, False)),
    ])
    return found or [("torch", lambda: (one_by_one(Q, K, V, starts.tolist(), causal),))]


def one_by_one(Q, K, V, starts, causal):
    parts = []
    for begin, end in zip(starts, starts[1:]):
        part = [each[begin:end].transpose(0, 1).unsqueeze(0) for each in (Q, K, V)]
        parts.append(F.scaled_dot_product_attention(*part, is_causal=causal)[0].transpose(0, 1))
    return torch.cat(parts)


def attention_backward(Q, K, V, dO, causal):
    """Named calls that return the gradients of Q, K and V."""
    inputs = [each.detach().requires_grad_() for each in (Q, K, V)]
    calls = []
    for name, forward in attention(*inputs, causal):
        output = forward()[0]
        calls.append((name, lambda output=output: torch.autograd.grad(output, inputs, dO, retain_graph=True)))
    return usable(calls)
