# `torch.random` for scripts. There is one generator: the processor's, which is the one device's too.
import torch
from torch import get_rng_state, initial_seed, manual_seed, set_rng_state


class fork_rng:
    """Leaves the random state as it was before the block."""

    def __init__(self, devices=None, enabled=True, device_type="cuda"):
        self.enabled = enabled

    def __enter__(self):
        if self.enabled:
            self.saved = get_rng_state()

    def __exit__(self, kind, value, traceback):
        if self.enabled:
            set_rng_state(self.saved)
        return False
