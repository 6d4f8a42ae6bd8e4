"""Threads and processes that call at once, and caches that cannot be used."""

import os
import threading

import tilepilot
import torch

from programs import added, scaled

CALLS = """
import sys, warnings
sys.path.insert(0, sys.argv[1])
import torch
from programs import scaled
x = torch.randn(8, 8)
with warnings.catch_warnings(record=True) as told:
    warnings.simplefilter("always")
    print(torch.equal(scaled(8, 8, 4)(x), x * 4), len(told))
"""


def together(count, work):
    """Runs work(k) on as many threads; the first exception of one is raised."""
    raised = []

    def guarded(k):
        try:
            work(k)
        except BaseException as error:
            raised.append(error)

    threads = [threading.Thread(target=guarded, args=(k,)) for k in range(count)]
    for thread in threads:
        thread.start()
    return threads, raised


def joined(threads, raised):
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()
    if raised:
        raise raised[0]


def call_often(k):
    numbers = torch.Generator()  # of its own: a fork copies the lock of torch's as it is
    x = torch.randn(64, 64, generator=numbers)
    for number in range(100):
        factor = (k + number) % 5 + 1
        assert torch.equal(scaled(64, 64, factor)(x), x * factor)
        y = torch.randn(8 * (number % 3 + 1), 8, generator=numbers)
        assert torch.equal(added(y, y), y * 2)


def test_threads_compile_and_call_at_once():
    joined(*together(8, call_often))


def test_forked_processes_call_while_threads_do():
    threads, raised = together(4, call_often)
    children = []
    for number in range(6):
        child = os.fork()
        if child == 0:
            status = 1
            try:
                x = torch.randn(512, 64, generator=torch.Generator())
                kernels = [scaled(512, 64, factor) for factor in (3, 100 + number)]
                status = 0 if all(torch.equal(kernel(x), x * factor)
                                  for kernel, factor in zip(kernels, (3, 100 + number))) else 2
            finally:
                os._exit(status)
        children.append(child)
    joined(threads, raised)
    assert [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children] == [0] * 6


def test_the_number_of_threads_may_change_while_kernels_run():
    big = torch.randn(4096, 256)
    kernel = scaled(4096, 256, 2)

    def call(_):
        for _ in range(30):
            assert torch.equal(kernel(big), big * 2)

    threads, raised = together(3, call)
    for count in (1, 3, 2, 0) * 5:
        tilepilot.set_num_threads(count)
    joined(threads, raised)


def test_a_cache_that_cannot_be_written_is_told_and_done_without(python, tmp_path):
    here = os.path.dirname(__file__)
    file = tmp_path / "no_folder"
    file.write_text("")
    run = python(CALLS, here, TILEPILOT_CACHE=str(file / "cache"))
    assert run.stdout == "True 1\n", run.stderr
    run = python(CALLS, here, TILEPILOT_CACHE=str(tmp_path / "cache"))
    assert run.stdout == "True 0\n", run.stderr


def test_without_a_compiler_there_is_an_exception(python, tmp_path):
    run = python("""
import sys
sys.path.insert(0, sys.argv[1])
import tilepilot, torch
from programs import scaled
try:
    scaled(8, 8, 12345)(torch.ones(8, 8))
except tilepilot.ToolchainError as error:
    print(error.kind)
""", os.path.dirname(__file__), PATH="/nonexistent", TILEPILOT_CACHE=str(tmp_path))
    assert run.stdout == "compiler_missing\n", run.stderr


def test_threads_may_be_limited(python):
    run = python("""
import sys, threading
sys.path.insert(0, sys.argv[1])
import tilepilot, torch
from programs import scaled
tilepilot.set_num_threads(1)
x = torch.randn(4096, 256)
assert torch.equal(scaled(4096, 256, 2)(x), x * 2)
print(len(open("/proc/self/status").read().split("Threads:")[1].split()[0]) == 1)
try:
    tilepilot.set_num_threads(-1)
except ValueError:
    print("refused")
""", os.path.dirname(__file__))
    assert run.stdout == "True\nrefused\n", run.stderr
