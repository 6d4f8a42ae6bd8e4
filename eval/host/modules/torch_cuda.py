# `torch.cuda` for scripts. Without a GPU the processor stands in for the one device: work is done when its call returns,
# so synchronizing waits for nothing, and events read the clock. All work is in one stream, so streams order nothing.
import time

import _tilepilot_device as gpu
import torch
from torch import amp

CAPABILITY = (gpu.major, gpu.minor)


class DeviceProperties:
    def __init__(self):
        self.name = gpu.name
        self.major, self.minor = CAPABILITY
        # Where there is no GPU, those of the one that programs are written for: scripts compute sizes of launches from them.
        self.multi_processor_count = gpu.multiprocessors if gpu.is_gpu else 132
        self.warp_size = 32
        self.max_threads_per_multi_processor = 2048
        self.regs_per_multiprocessor = 65536
        self.shared_memory_per_block = 48 * 1024
        self.shared_memory_per_block_optin = 227 * 1024
        self.shared_memory_per_multiprocessor = 228 * 1024
        self.L2_cache_size = 50 * 1024 * 1024

    def __repr__(self):
        return (f"_CudaDeviceProperties(name='{self.name}', major={self.major}, minor={self.minor}, "
                f"multi_processor_count={self.multi_processor_count})")


def check_device(device):
    """Device 0 is the only one; it may be named in any way."""
    if isinstance(device, str):
        index = int(device.partition(":")[2] or 0)
    else:
        index = getattr(device, "index", device)
    if index not in (None, 0, -1):
        raise RuntimeError("CUDA error: invalid device ordinal")


def is_available():
    return True


def is_initialized():
    return True


def init():
    pass


def is_bf16_supported(including_emulation=True):
    return True


def device_count():
    return 1


def current_device():
    return 0


def set_device(device):
    check_device(device)


def get_device_properties(device=None):
    check_device(device)
    return DeviceProperties()


def get_device_capability(device=None):
    check_device(device)
    return CAPABILITY


def get_device_name(device=None):
    return get_device_properties(device).name


def synchronize(device=None):
    check_device(device)
    if gpu.is_gpu:
        gpu.synchronize()


def empty_cache():
    pass


def manual_seed(seed):
    torch.manual_seed(seed)


def manual_seed_all(seed):
    torch.manual_seed(seed)


class Context:
    def __enter__(self):
        return self

    def __exit__(self, kind, value, traceback):
        return False


class device(Context):
    def __init__(self, device):
        check_device(device)


class Stream(Context):
    def __init__(self, device=None, priority=0):
        check_device(device)
        self.priority = priority
        self.cuda_stream = gpu.stream() if gpu.is_gpu else 0

    def synchronize(self):
        synchronize()

    def query(self):
        return True

    def wait_event(self, event):
        pass

    def wait_stream(self, stream):
        pass

    def record_event(self, event=None):
        event = Event() if event is None else event
        event.record(self)
        return event


ONLY_STREAM = Stream()


def current_stream(device=None):
    check_device(device)
    return ONLY_STREAM


def default_stream(device=None):
    return current_stream(device)


def stream(stream):
    return Context() if stream is None else stream


class Event:
    def __init__(self, enable_timing=False, blocking=False, interprocess=False, external=False):
        self.enable_timing = enable_timing
        self.at = None

    def record(self, stream=None):
        if gpu.is_gpu:
            self.at = gpu.event()
            gpu.record(self.at)
        else:
            self.at = time.perf_counter()

    def synchronize(self):
        if gpu.is_gpu and self.at is not None:
            gpu.wait(self.at)

    def wait(self, stream=None):
        pass

    def query(self):
        return gpu.is_done(self.at) if gpu.is_gpu and self.at is not None else True

    def elapsed_time(self, end_event):
        """Milliseconds from this event to the other."""
        if not (self.enable_timing and end_event.enable_timing):
            raise ValueError("Both events must be created with argument 'enable_timing=True'.")
        if self.at is None or end_event.at is None:
            raise ValueError("Both events must be recorded before calculating elapsed time.")
        return gpu.elapsed(self.at, end_event.at) if gpu.is_gpu else (end_event.at - self.at) * 1000.0


class profiler:
    """No profiler listens to these marks."""

    @staticmethod
    def start():
        pass

    @staticmethod
    def stop():
        pass
