# `tilelang.cuda.intrinsics`: products by warps whose operands lie in registers, as the tensor cores of mma.sync have
# them (PTX ISA 9.7.15.5, "matrix fragments"). Operands that no such instruction takes are multiplied by the lanes.
import warnings

import tilelang.language as T
from tilelang.layout import make_swizzled_layout as make_mma_swizzle_layout

WARP = 32


def bits_of(dtype):
    return T.dtype(dtype).bits


def get_swizzle_layout(row, column, row_size, dtype, swizzle_bytes=None):
    """Where an element of a tile lies: (tile of columns, row, column in it). Eight rows of 16 bytes, which ldmatrix reads
    at once, lie in all banks; the same permutation as TMA's swizzle of so many bytes."""
    row_bytes = bits_of(dtype) * row_size // 8
    assert row_bytes % 32 == 0, "a row has a multiple of 32 bytes"
    vectors = (swizzle_bytes or min(128, row_bytes)) // 16
    elements = 128 // bits_of(dtype)
    vector = column // elements
    swizzled = vector % vectors ^ row % 8 // (8 // vectors)
    return vector // vectors, row, swizzled * elements + column % elements


def operand_row(lane, item, per_lane):
    """Of a 16 x k operand: the row of what a lane holds as `item`; each row's k elements fall to four lanes."""
    run = per_lane // 4
    return lane // 4 + 8 * (item // run % 2)


def operand_column(lane, item, per_lane):
    run = per_lane // 4
    return lane % 4 * run + item % run + 4 * run * (item // (2 * run))


class TensorCoreIntrinEmitter:
    M_DIM = 16
    WARP_SIZE = WARP

    def __init__(self, a_dtype="float16", b_dtype="float16", accum_dtype="float16", a_transposed=False, b_transposed=False,
                 block_row_warps=2, block_col_warps=2, warp_row_tiles=8, warp_col_tiles=8, chunk=16, reduce_k=1,
                 num_elems_per_byte=1, is_m_first=False, thread_var=None):
        if warp_row_tiles < 16 or warp_row_tiles % 16 or warp_col_tiles % 8:
            raise ValueError(f"a warp cannot have tiles of {warp_row_tiles} x {warp_col_tiles}")
        if bits_of(a_dtype) > 32:
            raise ValueError(f"a warp cannot load operands of {a_dtype}: use T.gemm")
        self.a_dtype, self.b_dtype, self.accum_dtype = a_dtype, b_dtype, accum_dtype
        self.a_transposed, self.b_transposed = a_transposed, b_transposed
        self.block_row_warps, self.block_col_warps = block_row_warps, block_col_warps
        self.warp_row_tiles, self.warp_col_tiles = warp_row_tiles, warp_col_tiles
        self.chunk, self.reduce_k = chunk, reduce_k
        self.is_m_first, self.thread_var = bool(is_m_first), thread_var
        self.n_dim = 16 if warp_col_tiles % 16 == 0 else 8
        self.k_dim = min(256 // bits_of(a_dtype), chunk)
        self.micro_size_x, self.micro_size_y, self.micro_size_k = self.M_DIM, self.n_dim, self.k_dim
        self.warp_rows, self.warp_cols = warp_row_tiles // self.M_DIM, warp_col_tiles // self.n_dim
        self.local_size_a = self.M_DIM * self.k_dim // WARP
        self.local_size_b = self.n_dim * self.k_dim // WARP
        self.local_size_out = self.M_DIM * self.n_dim // WARP
        self.threads = WARP * block_row_warps * block_col_warps * reduce_k
        self.mma_types = self.types_of_mma()

    def get_thread_binding(self):
        return T.get_thread_binding() if self.thread_var is None else self.thread_var

    def extract_thread_binding(self, thread, is_m_first=None):
        """The lane, then the warp along n and along m."""
        rows, cols = self.block_row_warps, self.block_col_warps
        if self.is_m_first if is_m_first is None else is_m_first:
            return thread % WARP, thread // WARP % cols, thread // (WARP * cols) % rows
        return thread % WARP, thread // (WARP * rows) % cols, thread // WARP % rows

    def a_place(self, lane, item):
        return operand_row(lane, item, self.local_size_a), operand_column(lane, item, self.local_size_a)

    def b_place(self, lane, item):
        """Of the n x k operand: eight rows of it are half of the registers."""
        half = 8 * self.k_dim // WARP
        run = half // 2
        within = item % half
        return (lane // 4 + 8 * (item // half), lane % 4 * run + within % run + 4 * run * (within // run))

    def c_place(self, lane, item):
        return lane // 4 + 8 * (item % 4 // 2), lane % 4 * 2 + item % 2 + 8 * (item // 4)

    def types_of_mma(self):
        """What PTX calls the operands and the sums; None if no tensor core multiplies such, rows of 32 bytes at a time."""
        a, b, c = str(T.dtype(self.a_dtype)), str(T.dtype(self.b_dtype)), str(T.dtype(self.accum_dtype))
        name = {"float16": "fp16", "bfloat16": "bf16", "float32": "tf32", "int8": "int8", "uint8": "uint8",
                "float8_e4m3fn": "e4m3", "float8_e5m2": "e5m2", "float8_e4m3": "e4m3"}
        sums = {"float16": "fp16", "float32": "fp32", "int32": "int32"}
        types = name.get(a), name.get(b), sums.get(c)
        mixed = a == b or bits_of(a) == bits_of(b) == 8
        integers = "int" in a
        fits = c == ("int32" if integers else "float32") or a == b == c == "float16"
        has_mma = (None not in types and mixed and fits and ("int" in b) == integers
                   and self.k_dim * bits_of(a) == 256)
        return types if has_mma else None

    def load(self, to, tile, outer, k, is_a):
        """The matrix of 16 (or n) x k elements that begins at `outer` and `k`, into the registers from `to` on."""
        lane = self.get_thread_binding() % WARP
        dtype, transposed = (self.a_dtype, self.a_transposed) if is_a else (self.b_dtype, not self.b_transposed)
        row_of_k = 128 // bits_of(dtype)
        count = 4 if is_a or self.n_dim == 16 else 2
        # Of A the second matrix is further down, of B further along k.
        down, along = (lane // 8 % 2, lane // 16) if is_a else (lane // 16, lane // 8 % 2)
        if count == 2:
            down = 0
        registers, offset = to
        target = T.access_ptr(registers[offset], "w")
        if transposed:
            source = T.access_ptr(tile[k + along * 8 + lane % 8, outer + down * 8], "r")
        else:
            source = T.access_ptr(tile[outer + down * 8 + lane % 8, k + along * row_of_k], "r")
        T.ptx_ldmatrix(transposed, count, source, target)

    def ldmatrix_a(self, a_local, a_shared, ki, rk=0):
        by_instruction = self.mma_types is not None and not (self.a_transposed and bits_of(self.a_dtype) != 16)

        @T.macro
        def load(a_local, a_shared):
            _, _, warp = self.extract_thread_binding(self.get_thread_binding())
            for i in T.unroll(self.warp_rows):
                m = warp * self.warp_row_tiles + i * self.micro_size_x
                k = rk * self.chunk + ki * self.micro_size_k
                self.load((a_local, i * self.local_size_a), a_shared, m, k, True)

        @T.macro
        def load_elements(a_local, a_shared):
            lane, _, warp = self.extract_thread_binding(self.get_thread_binding())
            for i, item in T.grid(self.warp_rows, self.local_size_a):
                row, column = self.a_place(lane, item)
                m = warp * self.warp_row_tiles + i * self.micro_size_x + row
                k = rk * self.chunk + ki * self.micro_size_k + column
                if self.a_transposed:
                    a_local[i * self.local_size_a + item] = a_shared[k, m]
                else:
                    a_local[i * self.local_size_a + item] = a_shared[m, k]

        return load(a_local, a_shared) if by_instruction else load_elements(a_local, a_shared)

    def ldmatrix_b(self, b_local, b_shared, ki, rk=0):
        by_instruction = self.mma_types is not None and (self.b_transposed or bits_of(self.b_dtype) == 16)

        @T.macro
        def load(b_local, b_shared):
            _, warp, _ = self.extract_thread_binding(self.get_thread_binding())
            for j in T.unroll(self.warp_cols):
                n = warp * self.warp_col_tiles + j * self.micro_size_y
                k = rk * self.chunk + ki * self.micro_size_k
                self.load((b_local, j * self.local_size_b), b_shared, n, k, False)

        @T.macro
        def load_elements(b_local, b_shared):
            lane, warp, _ = self.extract_thread_binding(self.get_thread_binding())
            for j, item in T.grid(self.warp_cols, self.local_size_b):
                row, column = self.b_place(lane, item)
                n = warp * self.warp_col_tiles + j * self.micro_size_y + row
                k = rk * self.chunk + ki * self.micro_size_k + column
                if self.b_transposed:
                    b_local[j * self.local_size_b + item] = b_shared[n, k]
                else:
                    b_local[j * self.local_size_b + item] = b_shared[k, n]

        return load(b_local, b_shared) if by_instruction else load_elements(b_local, b_shared)

    def mma(self, a_local, b_local, c_local, k_inner=0):
        if self.mma_types is None:
            warnings.warn(f"no tensor core multiplies {self.a_dtype} by {self.b_dtype} into {self.accum_dtype}, "
                          f"{self.k_dim} of them a row: the lanes multiply them one by one")
            return self.multiply_by_lanes(a_local, b_local, c_local)
        a_name, b_name, c_name = self.mma_types

        @T.macro
        def multiply(a_local, b_local, c_local):
            for i in T.unroll(self.warp_rows):
                for j in T.unroll(self.warp_cols):
                    for half in T.unroll(self.n_dim // 8):
                        T.ptx_mma(self.accum_dtype, f"m16n8k{self.k_dim}", "row", "col", a_name, b_name, c_name,
                                  a_local.data, i * self.local_size_a, b_local.data,
                                  j * self.local_size_b + half * (8 * self.k_dim // WARP), c_local.data,
                                  (i * self.warp_cols + j) * self.local_size_out + half * 4, False)

        return multiply(a_local, b_local, c_local)

    def multiply_by_lanes(self, a_local, b_local, c_local):
        @T.macro
        def multiply(a_local, b_local, c_local):
            thread = self.get_thread_binding()
            lane, warp = thread % WARP, thread // WARP
            a = T.alloc_shared((self.threads // WARP, self.warp_row_tiles, self.k_dim), self.a_dtype)
            b = T.alloc_shared((self.threads // WARP, self.warp_col_tiles, self.k_dim), self.b_dtype)
            for i, item in T.grid(self.warp_rows, self.local_size_a):
                row, column = self.a_place(lane, item)
                a[warp, i * self.M_DIM + row, column] = a_local[i * self.local_size_a + item]
            for j, item in T.grid(self.warp_cols, self.local_size_b):
                row, column = self.b_place(lane, item)
                b[warp, j * self.n_dim + row, column] = b_local[j * self.local_size_b + item]
            T.sync_warp()
            for i, j, item in T.grid(self.warp_rows, self.warp_cols, self.local_size_out):
                row, column = self.c_place(lane, item)
                for k in T.serial(self.k_dim):
                    c_local[(i * self.warp_cols + j) * self.local_size_out + item] += T.cast(
                        a[warp, i * self.M_DIM + row, k], self.accum_dtype) * T.cast(
                            b[warp, j * self.n_dim + column, k], self.accum_dtype)
            T.sync_warp()

        return multiply(a_local, b_local, c_local)

    def stmatrix(self, c_local, c, pid_m=None, pid_n=None):
        rows, cols = self.block_row_warps * self.warp_rows, self.block_col_warps * self.warp_cols
        first_row, first_col = (0, 0) if pid_m is None or pid_n is None else (pid_m * rows, pid_n * cols)

        @T.macro
        def store(c_local, c):
            lane, warp_n, warp_m = self.extract_thread_binding(self.get_thread_binding())
            for i in T.unroll(self.warp_rows):
                for j in T.unroll(self.warp_cols):
                    for run in T.unroll(self.local_size_out // 2):
                        row, column = self.c_place(lane, run * 2)
                        tile_row, tile_col = first_row + warp_m * self.warp_rows + i, first_col + warp_n * self.warp_cols + j
                        item = (i * self.warp_cols + j) * self.local_size_out + run * 2
                        for k in T.vectorized(2):
                            if len(c.shape) == 4:
                                c[tile_row, tile_col, row, column + k] = c_local[item + k]
                            else:
                                c[tile_row * self.M_DIM + row, tile_col * self.n_dim + column + k] = c_local[item + k]

        return store(c_local, c)


INT4TensorCoreIntrinEmitter = TensorCoreIntrinEmitter
