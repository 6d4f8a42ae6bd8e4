import triton
import triton.language as tl

# What a module computes from one that nobody has stands in for its value until it is used.
CACHED = "cache" in triton.options()
OPTIONS = {"cache": CACHED} if CACHED else {}
if int(triton.__version__) < 3:
    from triton.old import launch
else:
    from triton.new import launch


@triton.jit
def kernel(x):
    tl.store(x, 1)


def main():
    kernel[(1,)](0)


main()
