# `tilelang.carver.roller` for scripts: what a recommendation looks like.


class Rasterization:
    panel_width_ = None

    @property
    def panel_width(self):
        assert self.panel_width_ is not None
        return self.panel_width_


class NoRasterization(Rasterization):
    def __repr__(self):
        return "<NoRasterization>"


class Rasterization2DRow(Rasterization):
    def __init__(self, panel_width=4):
        self.panel_width_ = panel_width

    def __repr__(self):
        return f"<Rasterization2DRow({self.panel_width_})>"


class Rasterization2DColumn(Rasterization):
    def __init__(self, panel_width=4):
        self.panel_width_ = panel_width

    def __repr__(self):
        return f"<Rasterization2DColumn({self.panel_width_})>"


class Hint:
    """Tiles of a block (`block`), of a warp where tensor cores work (`warp`), else of all threads (`thread`), and of the
    summed axes (`rstep`). `tiles` and `ms` are our own: the same in the words of the language, and the time that the
    model expects."""

    def __init__(self):
        self.arch = None
        self.use_tc = None
        self.block, self.thread, self.warp = [], [], []
        self.rstep, self.reduce_thread = [], []
        self.rasterization_plan = NoRasterization()
        self.split_k_factor = 1
        self.pipeline_stage = 1
        self.use_async = False
        self.vectorize = {}
        self.shared_scope = "shared.dyn"
        self.tiles = {}
        self.ms = None

    def to_dict(self):
        shown = {"block": self.block}
        shown["warp" if self.use_tc else "thread"] = self.warp if self.use_tc else self.thread
        shown["rstep"] = self.rstep
        if self.reduce_thread and max(self.reduce_thread) > 1:
            shown["reduce_thread"] = self.reduce_thread
        if self.use_tc:
            shown["use_tc"] = self.use_tc
        if self.vectorize:
            shown["vectorize"] = self.vectorize
        if self.pipeline_stage != 1:
            shown["pipeline_stage"] = self.pipeline_stage
        return shown

    @classmethod
    def from_dict(cls, values):
        hint = cls()
        for name, value in values.items():
            setattr(hint, name, value)
        return hint

    @property
    def step(self):
        return [1 for _ in self.block]

    @property
    def raxis_order(self):
        return list(range(len(self.rstep)))

    def __repr__(self):
        return str(self.to_dict())
