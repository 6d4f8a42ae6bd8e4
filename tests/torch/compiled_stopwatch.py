"""Times of calls on a GPU that is simulated, in microseconds: the host needs 20, 68 and 160 of them to launch what takes
the GPU 14; then 5000, which are beyond what is hidden."""

import sys

sys.path.insert(0, sys.argv[1])
from tilepilot_export import compiled  # noqa: E402

FLUSH, LAUNCH, CALL = 92e-6, 4e-6, 14e-6


class Simulated:
    """Both clocks. What is launched begins when the host has launched it and the GPU is free."""

    now = busy = 0.0

    @classmethod
    def launch(cls, host, gpu):
        cls.now += host
        cls.busy = max(cls.busy, cls.now) + gpu

    @classmethod
    def wait(cls):
        cls.now = max(cls.now, cls.busy)


class Event:
    def __init__(self, enable_timing):
        assert enable_timing

    def record(self):
        Simulated.launch(1e-6, 0)
        self.at = Simulated.busy

    def synchronize(self):
        Simulated.wait()

    def elapsed_time(self, end):
        return (end.at - self.at) * 1e3


class Torch:
    uint8 = None

    class cuda:
        Event = Event
        synchronize = Simulated.wait

    @staticmethod
    def empty(size, dtype, device):
        class Tensor:
            @staticmethod
            def zero_():
                Simulated.launch(LAUNCH, FLUSH)

        return Tensor


class Clock:
    @staticmethod
    def perf_counter():
        return Simulated.now


compiled.torch, compiled.time = Torch, Clock
stopwatch = compiled.Stopwatch()
for host in (20e-6, 68e-6, 160e-6, 5000e-6):
    stopwatch.expect(host)
    result, seconds = stopwatch.timed(lambda: Simulated.launch(host, CALL) or "result")
    assert result == "result"
    print(stopwatch.flushes, round(seconds * 1e6))
