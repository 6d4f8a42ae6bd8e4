"""Says whether a puzzle is solved, and if not, where its results are wrong. There is nothing to fill in."""
import sys

import torch

from cases import ASYNCHRONOUS, PUZZLES

# What results hold before the kernel runs: float16 has the number too, and no right result is near it.
UNWRITTEN = -12344.0


def index_text(name, index):
    return f"{name}[{', '.join(str(each) for each in index)}]"


def places(name, wrong):
    """How many elements are wrong, the first of them, and the box that they lie in."""
    found = wrong.nonzero().tolist()
    axes = range(len(wrong.shape))
    low = [min(each[axis] for each in found) for axis in axes]
    high = [max(each[axis] for each in found) for axis in axes]
    box = index_text(name, [f"{low[axis]}:{high[axis] + 1}" for axis in axes])
    return len(found), found[0], box


def complaints(case, got):
    """What is wrong with a result, in lines; empty: nothing."""
    count = got.numel()
    unwritten = got == UNWRITTEN
    if bool(unwritten.all()):
        return [f"the kernel wrote no element of `{case.result}`: fill the gap in the file"]
    lines = []
    if bool(unwritten.any()):
        number, first, box = places(case.result, unwritten)
        lines.append(f"{number} of {count} elements were not written: the first is "
                     f"{index_text(case.result, first)}, all lie in {box}")
    error = (got.double() - case.expected).abs()
    allowed = case.tolerance * float(case.expected.abs().max())
    wrong = ~(error <= allowed) & ~unwritten  # true for NaN
    if bool(wrong.any()):
        number, first, box = places(case.result, wrong)
        lines.append(f"{number} of {count} elements are wrong: the first is {index_text(case.result, first)}, "
                     f"all lie in {box}")
        at = tuple(first)
        lines.append(f"{index_text(case.result, first)} is {float(got[at]):.6g}, "
                     f"right is {float(case.expected[at]):.6g}, allowed is a difference of {allowed:.2g}")
    return lines


def judge(number, program):
    """Prints the verdict of one puzzle and says whether it is solved. Errors of the kernel go to the caller."""
    name, cases = PUZZLES[number]
    for case in cases():
        kernel = program(*case.sizes.values())
        got = torch.full(case.expected.shape, UNWRITTEN, dtype=case.dtype)
        kernel(*case.inputs, got)
        lines = complaints(case, got)
        if lines:
            sizes = ", ".join(f"{size} = {value}" for size, value in case.sizes.items())
            print(f"puzzle {number} ({name}): not solved, with {sizes}")
            for line in lines:
                print(f"  {line}")
            return False
    print(f"puzzle {number} ({name}): solved")
    if number in ASYNCHRONOUS and "__global__" not in kernel.get_kernel_source():
        print("  on a processor, which waits for every copy: judge it with `--target emulate:sm_90a` as well")
    return True


def judge_alone(number, program):
    """The verdict of a puzzle that is run by itself: the exit code is 1 where it is not solved."""
    try:
        is_solved = judge(number, program)
    except Exception:
        print(f"puzzle {number} ({PUZZLES[number][0]}): not solved, the kernel fails")
        raise  # `tilepilot run` shows the line
    if not is_solved:
        sys.exit(1)
