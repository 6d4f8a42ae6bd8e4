import triton
import triton.language as tl


@triton.jit
def kernel(x):
    tl.store(x, 1)


def main():
    kernel[(1,)](0)


main()
