# `tilelang.carver.template` for scripts: kinds of programs, and the tiles that the model of the hardware recommends for
# them.
from dataclasses import dataclass

import _tilepilot_tuning as native
import tilelang.language as T
from tilelang.carver.arch import auto_infer_current_arch
from tilelang.carver.roller import Hint, Rasterization2DRow


def product(extents):
    total = 1
    for extent in extents:
        total *= extent
    return total


def warp_tile(block, threads):
    """Warps stand over the block's tile as squarely as they can."""
    warps = threads // 32
    tiles = []
    rows = 1
    while rows <= warps:
        tile = [block[0] // rows, block[1] * rows // warps]
        if tile[0] >= 16 and tile[1] >= 8:
            tiles.append((sum(tile), tile))
        rows *= 2
    return min(tiles)[1]


class BaseTemplate:
    kind = None

    def problem(self):
        raise NotImplementedError(f"`{type(self).__name__}` describes no problem")

    def with_arch(self, arch):
        self._arch = arch
        return self

    def has_arch(self):
        return getattr(self, "_arch", None) is not None

    @property
    def arch(self):
        if not self.has_arch():
            self._arch = auto_infer_current_arch()
        return self._arch

    def recommend_tiles(self, topk=10):
        """In the words of the language: `block_M`, `num_stages` and so on, the best first."""
        return native.recommend(self.kind, self.problem(), self.arch.description(), topk)

    def recommend_hints(self, topk=10):
        return [self.finished(self.hint_of(tiles), tiles) for tiles in self.recommend_tiles(topk)]

    def recommend_default_config(self):
        hints = self.recommend_hints(1)
        if not hints:
            raise ValueError(f"no tiles of {self} fit on {self.arch}")
        return hints[0]

    def get_hardware_aware_configs(self, arch=None, topk=10):
        return (self if arch is None else self.with_arch(arch)).recommend_hints(topk)

    def finished(self, hint, tiles):
        hint.arch, hint.tiles, hint.ms = self.arch, tiles, tiles["ms"]
        hint.pipeline_stage, hint.use_async = tiles["num_stages"], tiles["num_stages"] > 1
        hint.split_k_factor = tiles["split_k"]
        if tiles["panel_size"]:
            hint.rasterization_plan = Rasterization2DRow(tiles["panel_size"])
        return hint

    def equivalent_function(self):
        """A program that computes the template, with the tiles of the first hint."""
        return self.program(self.recommend_default_config().tiles)

    def params_as_dict(self):
        return {name: getattr(self, name) for name in type(self).__annotations__}

    @property
    def class_attributes(self):
        return self.params_as_dict()


def positive(**extents):
    for name, extent in extents.items():
        assert isinstance(extent, int) and extent > 0, f"{name} should be a positive integer, not {extent!r}"


@dataclass
class MatmulTemplate(BaseTemplate):
    M: int = None
    N: int = None
    K: int = None
    trans_A: bool = False
    trans_B: bool = True
    in_dtype: str = "float16"
    out_dtype: str = "float16"
    accum_dtype: str = "float16"
    with_bias: bool = False

    kind = "gemm"

    def __post_init__(self):
        positive(M=self.M, N=self.N, K=self.K)

    def problem(self):
        return {"m": self.M, "n": self.N, "k": self.K, "element": self.in_dtype, "output": self.out_dtype,
                "transpose_a": self.trans_A, "transpose_b": self.trans_B}

    def hint_of(self, tiles):
        hint = Hint()
        hint.use_tc = True
        hint.block, hint.rstep = [tiles["block_M"], tiles["block_N"]], [tiles["block_K"]]
        hint.warp = warp_tile(hint.block, tiles["threads"])
        return hint

    def program(self, tiles):
        M, N, K, trans_A, trans_B = self.M, self.N, self.K, self.trans_A, self.trans_B
        block_M, block_N, block_K = tiles["block_M"], tiles["block_N"], tiles["block_K"]
        in_dtype, out_dtype, accum_dtype = self.in_dtype, self.out_dtype, self.accum_dtype
        A_shape, B_shape = (K, M) if trans_A else (M, K), (N, K) if trans_B else (K, N)

        @T.macro
        def multiply(A, B, C_local, bx, by):
            A_shared = T.alloc_shared((block_K, block_M) if trans_A else (block_M, block_K), in_dtype)
            B_shared = T.alloc_shared((block_N, block_K) if trans_B else (block_K, block_N), in_dtype)
            T.clear(C_local)
            for k in T.Pipelined(T.ceildiv(K, block_K), num_stages=tiles["num_stages"]):
                if trans_A:
                    T.copy(A[k * block_K, by * block_M], A_shared)
                else:
                    T.copy(A[by * block_M, k * block_K], A_shared)
                if trans_B:
                    T.copy(B[bx * block_N, k * block_K], B_shared)
                else:
                    T.copy(B[k * block_K, bx * block_N], B_shared)
                T.gemm(A_shared, B_shared, C_local, transpose_A=trans_A, transpose_B=trans_B)

        @T.prim_func
        def matmul(A: T.Tensor(A_shape, in_dtype), B: T.Tensor(B_shape, in_dtype), C: T.Tensor((M, N), out_dtype)):
            with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=tiles["threads"]) as (bx, by):
                C_local = T.alloc_fragment((block_M, block_N), accum_dtype)
                multiply(A, B, C_local, bx, by)
                T.copy(C_local, C[by * block_M, bx * block_N])

        @T.prim_func
        def matmul_with_bias(A: T.Tensor(A_shape, in_dtype), B: T.Tensor(B_shape, in_dtype),
                             Bias: T.Tensor((N,), accum_dtype), C: T.Tensor((M, N), out_dtype)):
            with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=tiles["threads"]) as (bx, by):
                C_local = T.alloc_fragment((block_M, block_N), accum_dtype)
                multiply(A, B, C_local, bx, by)
                for i, j in T.Parallel(block_M, block_N):
                    C_local[i, j] = C_local[i, j] + Bias[bx * block_N + j]
                T.copy(C_local, C[by * block_M, bx * block_N])

        return matmul_with_bias if self.with_bias else matmul


@dataclass
class ConvTemplate(BaseTemplate):
    """As a product: a row of pixels by F filters, summed over K * K * C."""
    N: int
    C: int
    H: int
    W: int
    F: int
    K: int
    S: int
    D: int
    P: int
    in_dtype: str = "float16"
    out_dtype: str = "float16"
    accum_dtype: str = "float16"
    with_bias: bool = False

    kind = "gemm"
    hint_of = MatmulTemplate.hint_of

    def __post_init__(self):
        positive(N=self.N, C=self.C, H=self.H, W=self.W, F=self.F, K=self.K, S=self.S, D=self.D)

    def pixels(self):
        reach = self.D * (self.K - 1) + 1
        return [(extent + 2 * self.P - reach) // self.S + 1 for extent in (self.H, self.W)]

    def problem(self):
        height, width = self.pixels()
        return {"m": self.N * height * width, "n": self.F, "k": self.K * self.K * self.C, "element": self.in_dtype,
                "output": self.out_dtype, "transpose_b": False}

    def program(self, tiles):
        if self.with_bias:
            raise NotImplementedError("there is no program of a convolution with a bias here; its hints are the same")
        N, C, H, W, F, K, S, D, P = self.N, self.C, self.H, self.W, self.F, self.K, self.S, self.D, self.P
        height, width = self.pixels()
        block_M, block_N, block_K = tiles["block_M"], tiles["block_N"], tiles["block_K"]
        in_dtype = self.in_dtype

        @T.prim_func
        def convolution(A: T.Tensor((N, H, W, C), in_dtype), B: T.Tensor((K, K, C, F), in_dtype),
                        Out: T.Tensor((N, height, width, F), self.out_dtype)):
            with T.Kernel(T.ceildiv(F, block_N), T.ceildiv(N * height * width, block_M),
                          threads=tiles["threads"]) as (bx, by):
                A_shared = T.alloc_shared((block_M, block_K), in_dtype)
                B_shared = T.alloc_shared((block_K, block_N), in_dtype)
                sums = T.alloc_fragment((block_M, block_N), self.accum_dtype)
                T.clear(sums)
                for k in T.Pipelined(T.ceildiv(K * K * C, block_K), num_stages=tiles["num_stages"]):
                    for i, j in T.Parallel(block_M, block_K):
                        pixel, place = by * block_M + i, k * block_K + j
                        y = pixel % (height * width) // width * S + place // (K * C) * D - P
                        x = pixel % width * S + place // C % K * D - P
                        inside = (pixel < N * height * width) & (place < K * K * C) & (y >= 0) & (y < H) & (x >= 0) & (x < W)
                        A_shared[i, j] = T.if_then_else(inside, A[pixel // (height * width), y, x, place % C], 0)
                    for i, j in T.Parallel(block_K, block_N):
                        place, filter = k * block_K + i, bx * block_N + j
                        B_shared[i, j] = T.if_then_else((place < K * K * C) & (filter < F),
                                                        B[place // (K * C), place // C % K, place % C, filter], 0)
                    T.gemm(A_shared, B_shared, sums)
                for i, j in T.Parallel(block_M, block_N):
                    pixel, filter = by * block_M + i, bx * block_N + j
                    if pixel < N * height * width and filter < F:
                        Out[pixel // (height * width), pixel % (height * width) // width, pixel % width, filter] = sums[i, j]

        return convolution


@dataclass
class FlashAttentionTemplate(BaseTemplate):
    """`block` holds rows of queries and of keys."""
    batch_size: int = 1
    num_heads: int = 1
    head_dim: int = 1
    seq_length: int = 1
    seq_kv_length: int = 1
    is_causal: bool = False
    in_dtype: str = "float16"
    out_dtype: str = "float16"
    accum_dtype: str = "float16"

    kind = "attention"

    def __post_init__(self):
        positive(batch_size=self.batch_size, num_heads=self.num_heads, head_dim=self.head_dim,
                 seq_length=self.seq_length, seq_kv_length=self.seq_kv_length)

    def problem(self):
        return {"batch": self.batch_size, "heads": self.num_heads, "queries": self.seq_length,
                "keys": self.seq_kv_length, "dim": self.head_dim, "element": self.in_dtype, "causal": self.is_causal}

    def hint_of(self, tiles):
        hint = Hint()
        hint.use_tc = True
        hint.block, hint.rstep = [tiles["block_M"], tiles["block_N"]], [self.head_dim]
        hint.warp = [tiles["block_M"] * 32 // tiles["threads"], tiles["block_N"]]
        return hint

    def program(self, tiles):
        batch, heads, dim, queries, keys = (self.batch_size, self.num_heads, self.head_dim, self.seq_length,
                                            self.seq_kv_length)
        block_M, block_N, dtype, causal = tiles["block_M"], tiles["block_N"], self.in_dtype, self.is_causal
        scale = dim**-0.5 * 1.44269504

        @T.prim_func
        def attention(Q: T.Tensor((batch, heads, queries, dim), dtype), K: T.Tensor((batch, heads, keys, dim), dtype),
                      V: T.Tensor((batch, heads, keys, dim), dtype),
                      Out: T.Tensor((batch, heads, queries, dim), self.out_dtype)):
            with T.Kernel(T.ceildiv(queries, block_M), heads, batch, threads=tiles["threads"]) as (bx, by, bz):
                Q_shared = T.alloc_shared((block_M, dim), dtype)
                K_shared = T.alloc_shared((block_N, dim), dtype)
                V_shared = T.alloc_shared((block_N, dim), dtype)
                scores = T.alloc_fragment((block_M, block_N), "float32")
                weights = T.alloc_fragment((block_M, block_N), dtype)
                result = T.alloc_fragment((block_M, dim), "float32")
                most, before, rescale, row_sum, total = (T.alloc_fragment((block_M,), "float32") for _ in range(5))
                T.copy(Q[bz, by, bx * block_M, 0], Q_shared)
                T.clear(result)
                T.clear(total)
                T.fill(most, -T.infinity("float32"))
                reach = T.min(T.ceildiv(keys, block_N), T.ceildiv((bx + 1) * block_M, block_N))
                for k in T.Pipelined(reach if causal else T.ceildiv(keys, block_N), num_stages=tiles["num_stages"]):
                    T.copy(K[bz, by, k * block_N, 0], K_shared)
                    for i, j in T.Parallel(block_M, block_N):
                        seen = k * block_N + j < keys
                        if causal:
                            seen = seen & (k * block_N + j <= bx * block_M + i)
                        scores[i, j] = T.if_then_else(seen, 0.0, -1e30)
                    T.gemm(Q_shared, K_shared, scores, transpose_B=True)
                    T.copy(V[bz, by, k * block_N, 0], V_shared)
                    T.copy(most, before)
                    T.reduce_max(scores, most, dim=1, clear=False)
                    for i in T.Parallel(block_M):
                        rescale[i] = T.exp2((before[i] - most[i]) * scale)
                    for i, j in T.Parallel(block_M, block_N):
                        scores[i, j] = T.exp2((scores[i, j] - most[i]) * scale)
                    T.reduce_sum(scores, row_sum, dim=1)
                    for i in T.Parallel(block_M):
                        total[i] = total[i] * rescale[i] + row_sum[i]
                    for i, j in T.Parallel(block_M, dim):
                        result[i, j] = result[i, j] * rescale[i]
                    T.copy(scores, weights)
                    T.gemm(weights, V_shared, result)
                for i, j in T.Parallel(block_M, dim):
                    result[i, j] = result[i, j] / total[i]
                T.copy(result, Out[bz, by, bx * block_M, 0])

        return attention


def threads_over(block, threads):
    """Threads along each axis of a tile, the last one first."""
    left, along = threads, []
    for extent in reversed(block):
        along.append(min(extent, left))
        left //= along[-1]
    return along[::-1]


@dataclass
class ElementwiseTemplate(BaseTemplate):
    shape: list = None
    dtype: str = "float16"

    kind = "elementwise"

    def __post_init__(self):
        positive(**{f"shape[{axis}]": extent for axis, extent in enumerate(self.shape)})

    def problem(self):
        return {"rows": product(self.shape[:-1]), "columns": self.shape[-1], "element": self.dtype}

    def hint_of(self, tiles):
        hint = Hint()
        tile = [tiles["block_M"], tiles["block_N"]]
        hint.block = ([1] * len(self.shape) + tile)[-len(self.shape):]
        hint.thread = threads_over(hint.block, tiles["threads"])
        return hint

    def program(self, tiles):
        rows, columns, dtype = product(self.shape[:-1]), self.shape[-1], self.dtype
        block_M, block_N = tiles["block_M"], tiles["block_N"]

        @T.prim_func
        def add_one(A: T.Tensor((rows, columns), dtype), B: T.Tensor((rows, columns), dtype)):
            with T.Kernel(T.ceildiv(columns, block_N), T.ceildiv(rows, block_M), threads=tiles["threads"]) as (bx, by):
                for i, j in T.Parallel(block_M, block_N):
                    if by * block_M + i < rows and bx * block_N + j < columns:
                        B[by * block_M + i, bx * block_N + j] = A[by * block_M + i, bx * block_N + j] + 1

        return add_one


@dataclass
class GeneralReductionTemplate(BaseTemplate):
    """`structure` has a letter an axis of `shape`: S for those that stay, R for those that are summed."""
    structure: str = None
    shape: list = None
    dtype: str = "float16"

    kind = "reduction"

    def __post_init__(self):
        if self.structure is None or self.shape is None:
            raise ValueError("Must provide both `structure` and `shape`.")
        if len(self.structure) != len(self.shape):
            raise ValueError("`structure` length must match `shape` length.")
        for letter in self.structure:
            if letter.upper() not in ("S", "R"):
                raise ValueError(f"Unrecognized axis type '{letter}', only 'S'/'R' allowed.")
        positive(**{f"shape[{axis}]": extent for axis, extent in enumerate(self.shape)})

    def extents(self, letter):
        return [extent for extent, own in zip(self.shape, self.structure) if own.upper() == letter]

    def problem(self):
        return {"rows": product(self.extents("S")), "columns": product(self.extents("R")), "element": self.dtype,
                "writes_rows": False}

    def hint_of(self, tiles):
        hint = Hint()
        spatial, summed = self.extents("S"), self.extents("R")
        hint.block = ([1] * len(spatial) + [tiles["block_M"]])[-len(spatial):] if spatial else []
        left = tiles["block_N"]
        for extent in reversed(summed):
            hint.rstep.insert(0, min(extent, left))
            left = max(1, left // extent)
        hint.thread = threads_over(hint.block, min(tiles["threads"], tiles["block_M"]))
        hint.reduce_thread = threads_over(hint.rstep, max(1, tiles["threads"] // product(hint.thread)))
        return hint

    def program(self, tiles):
        rows, columns, dtype = product(self.extents("S")), product(self.extents("R")), self.dtype
        block_M, block_N = tiles["block_M"], tiles["block_N"]

        @T.prim_func
        def sums(A: T.Tensor((rows, columns), dtype), B: T.Tensor((rows,), dtype)):
            with T.Kernel(T.ceildiv(rows, block_M), threads=tiles["threads"]) as bx:
                part = T.alloc_fragment((block_M, block_N), "float32")
                total = T.alloc_fragment((block_M,), "float32")
                T.clear(total)
                for k in T.serial(T.ceildiv(columns, block_N)):
                    T.copy(A[bx * block_M, k * block_N], part)
                    T.reduce_sum(part, total, dim=1, clear=False)
                T.copy(total, B[bx * block_M])

        return sums


@dataclass
class GEMVTemplate(BaseTemplate):
    N: int = None
    K: int = None
    trans_B: bool = True
    in_dtype: str = "float16"
    out_dtype: str = "float16"
    accum_dtype: str = "float16"
    with_bias: bool = False

    kind = "reduction"

    def __post_init__(self):
        positive(N=self.N, K=self.K)

    def problem(self):
        return {"rows": self.N, "columns": self.K, "element": self.in_dtype, "writes_rows": False}

    def hint_of(self, tiles):
        hint = Hint()
        hint.block, hint.rstep = [1, tiles["block_M"]], [tiles["block_N"]]
        hint.thread = [1, min(tiles["threads"], tiles["block_M"])]
        hint.reduce_thread = [max(1, tiles["threads"] // hint.thread[1])]
        return hint

    def program(self, tiles):
        return MatmulTemplate(1, self.N, self.K, False, self.trans_B, self.in_dtype, self.out_dtype, self.accum_dtype,
                              self.with_bias).with_arch(self.arch).equivalent_function()
