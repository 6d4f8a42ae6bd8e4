# `tilelang.cuda.intrinsics`: products by warps whose operands lie in registers, as the tensor cores of mma.sync have
# them (PTX ISA 9.7.15.5, "matrix fragments"). The lanes of a warp exchange what they hold through shared memory.
import tilelang.language as T
from tilelang.layout import make_swizzled_layout as make_mma_swizzle_layout

WARP = 32


def get_swizzle_layout(row, column, row_size, dtype):
    """Where elements lie is the target's choice: see `annotate_layout`."""
    return row, column


def bits_of(dtype):
    return T.dtype(dtype).bits


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

    def ldmatrix_a(self, a_local, a_shared, ki, rk=0):
        @T.macro
        def load(a_local, a_shared):
            lane, _, warp = self.extract_thread_binding(self.get_thread_binding())
            for i, item in T.grid(self.warp_rows, self.local_size_a):
                row, column = self.a_place(lane, item)
                m = warp * self.warp_row_tiles + i * self.micro_size_x + row
                k = rk * self.chunk + ki * self.micro_size_k + column
                if self.a_transposed:
                    a_local[i * self.local_size_a + item] = a_shared[k, m]
                else:
                    a_local[i * self.local_size_a + item] = a_shared[m, k]

        return load(a_local, a_shared)

    def ldmatrix_b(self, b_local, b_shared, ki, rk=0):
        @T.macro
        def load(b_local, b_shared):
            lane, warp, _ = self.extract_thread_binding(self.get_thread_binding())
            for j, item in T.grid(self.warp_cols, self.local_size_b):
                row, column = self.b_place(lane, item)
                n = warp * self.warp_col_tiles + j * self.micro_size_y + row
                k = rk * self.chunk + ki * self.micro_size_k + column
                if self.b_transposed:
                    b_local[j * self.local_size_b + item] = b_shared[n, k]
                else:
                    b_local[j * self.local_size_b + item] = b_shared[k, n]

        return load(b_local, b_shared)

    def mma(self, a_local, b_local, c_local, k_inner=0):
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
            for i, j, item in T.grid(self.warp_rows, self.warp_cols, self.local_size_out):
                row, column = self.c_place(lane, item)
                tile_row, tile_col = first_row + warp_m * self.warp_rows + i, first_col + warp_n * self.warp_cols + j
                value = c_local[(i * self.warp_cols + j) * self.local_size_out + item]
                if len(c.shape) == 4:
                    c[tile_row, tile_col, row, column] = value
                else:
                    c[tile_row * self.M_DIM + row, tile_col * self.n_dim + column] = value

        return store(c_local, c)


INT4TensorCoreIntrinEmitter = TensorCoreIntrinEmitter
