#!/usr/bin/env python3
"""An export by a process that has imported PyTorch already: `SCRIPT ARGUMENTS...` without the seconds that takes.

    export_client.py NAME SCRIPT ARGUMENTS...

NAME is the abstract socket of `SCRIPT --serve NAME` (tilepilot_export/server.py). Where there is none, or none that is
as this process is (user, Python, script, environment), SCRIPT is run here. Ends as the export ends; if this process
ends first, so does the export.
"""

import os
import signal
import socket
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))  # an isolated Python does not
from tilepilot_export.wire import Wire, user_of  # noqa: E402


def ask(name, script, arguments):
    """How the export ended: its exit code, or less a signal; None if there is nobody who does it."""
    request = {"python": sys.executable, "script": script, "arguments": arguments, "folder": os.getcwd(),
               "environment": dict(os.environ)}
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        connection.connect("\0" + name)
        if user_of(connection) != os.geteuid():
            return None
        wire = Wire(connection.detach())
        wire.send(request, [1, 2])
        answer = wire.receive()
    except (OSError, ValueError):
        return None
    return answer[0].get("ended") if answer else None


def main():
    name, script, *arguments = sys.argv[1:]
    script = os.path.abspath(script)
    ended = ask(name, script, arguments)
    if ended is None:
        os.execv(sys.executable, [sys.executable, script, *arguments])
    if ended < 0:
        if -ended != signal.SIGKILL:
            signal.signal(-ended, signal.SIG_DFL)
        os.kill(os.getpid(), -ended)
    os._exit(ended)


if __name__ == "__main__":
    main()
