# Convolutions of a plain tile program (the matrix of patches, read as tiles) against cuDNN: the 3 x 3 layers of
# ResNet-50, float16, channels last, stride 1, padding 1.
import tilelang
import tilelang.language as T
import torch
import torch.nn.functional as F

from measure import agree, best_beside, tell

BATCH = 64
LAYERS = [(56, 64), (28, 128), (14, 256), (7, 512)]  # extent, channels
CONFIGURATIONS = [(128, 256, 64, 3, 256), (128, 128, 64, 4, 256), (128, 128, 64, 3, 128), (128, 64, 64, 4, 128),
                  (64, 128, 64, 4, 128), (64, 64, 64, 4, 128)]
KERNEL, STRIDE, DILATION, PADDING = 3, 1, 1, 1


@tilelang.jit(out_idx=[2])
def convolution(extent, channels, block_M, block_N, block_K, num_stages, threads):
    rows, depth = BATCH * extent * extent, KERNEL * KERNEL * channels

    @T.prim_func
    def main(Image: T.Tensor((BATCH, extent, extent, channels), "float16"),
             Weight: T.Tensor((depth, channels), "float16"), Output: T.Tensor((rows, channels), "float16")):
        with T.Kernel(T.ceildiv(channels, block_N), T.ceildiv(rows, block_M), threads=threads) as (bx, by):
            patches = T.alloc_shared((block_M, block_K), "float16")
            weights = T.alloc_shared((block_K, block_N), "float16")
            result = T.alloc_fragment((block_M, block_N), "float32")
            T.clear(result)
            for k in T.Pipelined(T.ceildiv(depth, block_K), num_stages=num_stages):
                T.c2d_im2col(Image, patches, by, k, KERNEL, STRIDE, DILATION, PADDING)
                T.copy(Weight[k * block_K, bx * block_N], weights)
                T.gemm(patches, weights, result)
            T.copy(result, Output[by * block_M, bx * block_N])

    return main


def measure(extent, channels, floor):
    image = torch.randn(BATCH, extent, extent, channels, device="cuda", dtype=torch.float16)
    weight = torch.randn(KERNEL, KERNEL, channels, channels, device="cuda", dtype=torch.float16)
    flat_weight = weight.reshape(KERNEL * KERNEL * channels, channels)
    x = image.permute(0, 3, 1, 2)
    w = weight.permute(3, 2, 0, 1).contiguous(memory_format=torch.channels_last)
    theirs = lambda: F.conv2d(x, w, padding=PADDING)
    configurations = [each for each in CONFIGURATIONS if each[1] <= channels]
    kernels = [convolution(extent, channels, *configuration) for configuration in configurations]
    calls = [lambda kernel=kernel: kernel(image, flat_weight) for kernel in kernels]
    chosen, _, ours, other, first = best_beside(calls, [theirs])
    expected = theirs().permute(0, 2, 3, 1).reshape(BATCH * extent * extent, channels)
    for configuration, call in zip(configurations, calls):
        agree(f"the convolution {configuration}", call(), expected, 2e-2)
    flops = 2 * BATCH * extent * extent * channels * channels * KERNEL * KERNEL
    tell(f"conv 3x3 {extent}x{extent}x{channels} b{BATCH}", "TFLOP/s", flops / ours / 1e9, floor, flops / other / 1e9,
         f"{configurations[chosen]} of {[round(flops / time / 1e9) for time in first]}")


def main():
    torch.backends.cudnn.benchmark = True
    for extent, channels in LAYERS:
        measure(extent, channels, 0.85)


if __name__ == "__main__":
    main()
