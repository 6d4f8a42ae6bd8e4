"""Exports one after another or side by side, each in a fork of one process that has imported all that they need.

The socket is an abstract one: its name is gone when the process is. A request has the descriptors of standard output
and standard error beside it (export_client.py); the answer is {"ended": CODE}, or less a signal, or {"refused": WHY}. The export is ended if its client goes away, and all are when this process ends.
"""

import contextlib
import ctypes
import gc
import os
import selectors
import signal
import socket
import sys
import tempfile

from tilepilot_export.wire import Wire, user_of

# Variables that Python, PyTorch and their libraries have read by the time of a request, by how their names begin. An
# export gets all of its client's, but these would come too late.
READ_AT_THE_START = ("PYTHON", "LD_", "LANG", "LC_", "HOME", "MALLOC_", "GLIBC_", "OMP_", "GOMP_", "KMP_", "MKL_",
                     "OPENBLAS_", "DNNL_", "ONEDNN_", "ATEN_", "TORCH", "PYTORCH", "CUDA_HOME", "CUDA_MODULE", "CUBLAS")
THREADS = "OMP_NUM_THREADS"  # but a number of threads can be set later, too
PR_SET_PDEATHSIG = 1
SECONDS_TO_ASK = 10  # a request is there at once
FIRST_MODEL = """import torch


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(2, 2)

    def forward(self, x):
        return self.linear(x)


def get_inputs():
    return [torch.rand(2, 2)]


def get_init_inputs():
    return []
"""


def read_at_the_start(environment):
    return {name: value for name, value in environment.items()
            if name.startswith(READ_AT_THE_START) and name != THREADS}


class Server:
    """It listens from the beginning: who asks before it is ready waits no longer than for an export of its own."""

    def __init__(self, name, script, run):
        self.script, self.run = script, run
        self.environment = read_at_the_start(os.environ)
        self.clients = {}  # wire by process
        self.listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.listener.bind("\0" + name)
        self.listener.listen(256)
        self.events = selectors.DefaultSelector()
        self.events.register(self.listener, selectors.EVENT_READ, self.accept)

    def get_ready(self, export):
        """What an export imports when it first needs it, once for all."""
        import torch
        self.torch, self.threads = torch, torch.get_num_threads()
        torch.set_num_threads(1)  # threads are not there in a fork, where others would wait for them
        path = list(sys.path)
        with tempfile.TemporaryDirectory() as folder, contextlib.suppress(Exception):
            model = os.path.join(folder, "model.py")
            with open(model, "w", encoding="utf-8") as file:
                file.write(FIRST_MODEL)
            export([model, os.path.join(folder, "reference")])
        sys.path[:] = path
        sys.modules.pop("tilepilot_model", None)
        gc.collect()
        gc.freeze()

    def go_on(self):
        woken, wakes = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(wakes)
        self.events.register(woken, selectors.EVENT_READ, self.reap)
        while True:
            for key, _ in self.events.select():
                key.data(key.fileobj)

    def accept(self, listener):
        wire = Wire(listener.accept()[0].detach())
        wire.socket.settimeout(SECONDS_TO_ASK)
        descriptors, is_kept = [], False
        with contextlib.suppress(OSError, ValueError, KeyError):  # of a client that is none
            request, descriptors = wire.receive() or ({}, [])
            why = self.why_not(wire, request, descriptors)
            if why:
                wire.send({"refused": why})
            else:
                self.start(wire, request, descriptors)
                is_kept = True
        for descriptor in descriptors:
            os.close(descriptor)
        if not is_kept:
            wire.socket.close()

    def why_not(self, wire, request, descriptors):
        if user_of(wire.socket) != os.geteuid():
            return "another user"
        if (request["python"], request["script"]) != (sys.executable, self.script):
            return "another exporter"
        if read_at_the_start(request["environment"]) != self.environment:
            return "another environment"
        threads, own = request["environment"].get(THREADS), os.environ.get(THREADS)
        if threads != own and not (threads and threads.isdigit() and int(threads) > 0):
            return "another number of threads"
        return "" if len(descriptors) == 2 else "no standard output"

    def start(self, wire, request, descriptors):
        process = os.fork()
        if process == 0:
            self.become(request, descriptors)
        with contextlib.suppress(OSError):  # it may have done so
            os.setpgid(process, process)
        self.clients[process] = wire
        self.events.register(wire.socket, selectors.EVENT_READ, lambda _: self.end(process))

    def become(self, request, descriptors):
        """The export: what export_reference.py does as a process of its own."""
        code = 1
        try:
            parent = os.getppid()
            os.setpgid(0, 0)
            ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
            if os.getppid() != parent:
                os._exit(1)
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            self.events.close()
            self.listener.close()
            for other in self.clients.values():
                other.socket.close()
            os.dup2(descriptors[0], 1)
            os.dup2(descriptors[1], 2)
            os.chdir(request["folder"])
            os.environ.clear()
            os.environ.update(request["environment"])
            threads = request["environment"].get(THREADS, "")
            self.torch.set_num_threads(int(threads) if threads.isdigit() else self.threads)
            code = self.run(request["arguments"])
        except SystemExit as error:  # of the parser of arguments
            code = error.code if isinstance(error.code, int) else 1
        finally:
            sys.stderr.flush()
            os._exit(code)

    def end(self, process):
        """The client says nothing more, so it is gone."""
        self.events.unregister(self.clients[process].socket)
        with contextlib.suppress(OSError):
            os.killpg(process, signal.SIGKILL)

    def reap(self, woken):
        with contextlib.suppress(BlockingIOError):
            os.read(woken, 4096)
        while True:
            try:
                process, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if process == 0:
                return
            wire = self.clients.pop(process, None)
            if wire is None:
                continue
            with contextlib.suppress(OSError):  # what it has started
                os.killpg(process, signal.SIGKILL)
            with contextlib.suppress(KeyError, ValueError):
                self.events.unregister(wire.socket)
            with contextlib.suppress(OSError):
                wire.send({"ended": os.waitstatus_to_exitcode(status)})
            wire.socket.close()
