# Times on a GPU: two things in turn, each call with a cache that is full of other data, as medians of what events say.
import torch

FLUSH_BYTES = 256 << 20
CALLS = 40
WARM_CALLS = 4


def one(call, flush):
    flush.zero_()
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    begin.record()
    call()
    end.record()
    end.synchronize()
    return begin.elapsed_time(end)


def in_turn(*calls, repeat=CALLS):
    """Median milliseconds of each."""
    flush = torch.empty(FLUSH_BYTES // 4, dtype=torch.int32, device="cuda")
    for call in calls:
        for _ in range(WARM_CALLS):
            call()
    times = [[] for _ in calls]
    for _ in range(repeat):
        for call, into in zip(calls, times):
            into.append(one(call, flush))
    return [sorted(into)[len(into) // 2] for into in times]


def best_beside(calls, theirs):
    """The fastest of our calls beside the fastest of theirs: indices, times, and the times of all of ours."""
    first = in_turn(*calls, repeat=5)
    chosen = first.index(min(first))
    other = 0
    if len(theirs) > 1:
        second = in_turn(*theirs, repeat=5)
        other = second.index(min(second))
    return chosen, other, *in_turn(calls[chosen], theirs[other]), first


def agree(name, ours, theirs, tolerance, relative=True):
    """`relative`: to the largest number of theirs."""
    difference = (ours.float() - theirs.float()).abs().max()
    if relative:
        difference = difference / theirs.float().abs().max()
    assert difference < tolerance, f"{name} is wrong by {difference}"


def tell(name, unit, ours, floor, theirs=None, note=""):
    """A row of the table: what `scripts/bench-gpu` reads. The floor is a share of `theirs`, or what `ours` must reach."""
    print("ROW", name, unit, ours, theirs or 0, floor, note, sep=";")
