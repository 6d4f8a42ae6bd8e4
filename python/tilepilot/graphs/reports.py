"""What came of the parts of a graph."""

import dataclasses


@dataclasses.dataclass
class RegionReport:
    """What came of a region, or of what no program computes."""

    operators: list  # names, in order
    speedup: float | None  # against eager: of a program as the judge measured, of Inductor's code that of the graph
    why: str  # where it stays eager's; "": `runs` says what computes it
    runs: str = "torch"  # "program", "inductor"

    @property
    def used(self):
        """Whether a program runs."""
        return self.runs == "program"

    def leave_to_torch(self, why):
        self.runs, self.why = "torch", why
