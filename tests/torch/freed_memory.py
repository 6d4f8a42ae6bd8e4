"""Whether large tensors are new pages at each call: before keep_freed_memory() they are, after it they are not."""

import resource
import sys

sys.path.insert(0, sys.argv[1])
import torch  # noqa: E402

from tilepilot_export.compiled import keep_freed_memory  # noqa: E402


def page_faults():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(10):
        torch.empty(64 << 20, dtype=torch.uint8).fill_(1)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before


torch.set_num_threads(1)
page_faults()
given = page_faults()
keep_freed_memory()
page_faults()
print(given > 1000, page_faults() < 100)
