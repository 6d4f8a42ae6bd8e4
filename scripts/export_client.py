#!/usr/bin/env python3
"""An export by a process that has imported PyTorch already: `SCRIPT ARGUMENTS...` without the seconds that takes.

    export_client.py NAME SCRIPT ARGUMENTS...

NAME is the abstract socket of `SCRIPT --serve NAME` (tilepilot_export/server.py). Where there is none, or none that is
as this process is (user, Python, script, environment), SCRIPT is run here. Ends as the export ends; if this process
ends first, so does the export.
"""

import json
import os
import signal
import socket
import struct
import sys


def user_of(connection):
    credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    return struct.unpack("3i", credentials)[1]


def ask(name, script, arguments):
    """How the export ended: its exit code, or less a signal; None if there is nobody who does it."""
    request = {"python": sys.executable, "script": script, "arguments": arguments, "folder": os.getcwd(),
               "environment": dict(os.environ)}
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        try:
            connection.connect("\0" + name)
            if user_of(connection) != os.geteuid():
                return None
            text = (json.dumps(request) + "\n").encode()
            sent = socket.send_fds(connection, [text], [1, 2])
            connection.sendall(text[sent:])
            with connection.makefile() as answers:
                answer = answers.readline()
        except OSError:
            return None
    return json.loads(answer).get("ended") if answer.endswith("\n") else None


def main():
    name, script, *arguments = sys.argv[1:]
    script = os.path.abspath(script)
    ended = ask(name, script, arguments)
    if ended is None:
        os.execv(sys.executable, [sys.executable, script, *arguments])
    if ended < 0:
        signal.signal(-ended, signal.SIG_DFL) if -ended != signal.SIGKILL else None
        os.kill(os.getpid(), -ended)
    os._exit(ended)


if __name__ == "__main__":
    main()
