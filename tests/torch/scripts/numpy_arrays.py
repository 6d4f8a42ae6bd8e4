import numpy as np
import torch

a = np.array([[1.5, 2.0], [3.0, -4.0]])
print(a.shape, a.ndim, a.size, a.dtype == np.float64, a.tolist(), len(a))
print((a + 1).tolist(), (2 * a).tolist(), (1 / a).tolist(), (a ** 2).tolist(), (-a).tolist(), (a > 0).tolist())
print(np.mean(a), np.mean([1, 2, 6]), np.std(a, axis=0).tolist(), a.sum(), a.max(), np.min(a, axis=1).tolist())
print(np.median([3, 1, 2, 10]), np.percentile([1, 2, 3, 4], 25), [int(i) for i in np.unravel_index(7, (2, 3, 4))])
z = np.zeros((2, 3), dtype=np.int8)
z[0, 1] = 5
z[1] = 2
print(z.tolist(), z.dtype == np.int8, z.astype(np.float32).dtype == np.float32, np.zeros_like(z).tolist())
t = torch.from_numpy(z)
t += 1
print(t.dtype, z.tolist(), torch.tensor(np.ones(2, dtype=np.float32)).dtype, torch.arange(3).numpy().tolist())
print(np.arange(4).tolist(), np.arange(0, 1, 0.25).tolist(), np.linspace(0, 1, 3).tolist(), np.full(2, 7).tolist())
print(np.concatenate([a, a]).shape, np.stack([a, a], axis=1).shape, a.T.tolist(), a.reshape(-1).tolist())
print(np.sqrt([4.0, 9.0]).tolist(), np.abs(-3), np.where(a > 0, a, 0).tolist(), np.clip(a, 0, 2).tolist())
print(np.allclose(a, a + 1e-9), np.array_equal(a, a), a.argmax(), float(np.float16(0.1)), int(np.int32(3)))
print([row.tolist() for row in a], a[0, 1], a[:, 0].tolist(), bool((a == a).all()), (a @ a).tolist())
np.testing.assert_allclose(a, a + 1e-9)
np.random.seed(0)
print(np.random.rand(2, 3).shape, np.random.randint(0, 5, size=4).shape, np.random.randn(3).shape)
try:
    torch.ones(1, requires_grad=True).numpy()
except RuntimeError:
    print("RuntimeError")
