# `tilelang.tools` for scripts: what a program asks of a GPU, by the model of tile sizes.
from dataclasses import dataclass

import _tilepilot_tuning as native


@dataclass(frozen=True)
class AnalysisResult:
    """Operations and bytes of all blocks, seconds that the model expects, and what the device reaches at most."""
    total_flops: int
    total_global_bytes: int
    estimated_time: float
    expected_tflops: float
    expected_bandwidth_GBps: float


class Analyzer:
    @classmethod
    def analysis(cls, fn, device):
        description = device.description()
        estimate, workload = native.estimate(fn, description), native.workload(fn, description)
        if workload is None:
            raise ValueError("the grid of this program is only known when it is called")
        if "refusal" in estimate:
            raise ValueError(f"this program does not fit on {device}: {estimate['refusal']}")
        facts = native.hardware(description)
        return AnalysisResult(int(workload["operations"]), int(workload["bytes"]), estimate["ms"] / 1e3,
                              facts["half_rate"] / 1e12, facts["memory_rate"] / 1e9)
