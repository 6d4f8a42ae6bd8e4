"""Messages between processes on this machine, as eval/process/wire.cpp has them. Nothing of PyTorch is imported."""

import json
import os
import socket
import struct


def user_of(connection):
    """Who is on the other side of a connected socket."""
    credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    return struct.unpack("3i", credentials)[1]


class Wire:
    """Length-prefixed JSON over a socket, file descriptors beside it."""

    def __init__(self, number):
        self.socket = socket.socket(fileno=number)

    def receive(self):
        """(body, descriptors); None if the other side is gone."""
        descriptors = []
        header = self.read(8, descriptors)
        body = None if header is None else self.read(struct.unpack("=Q", header)[0], descriptors)
        if body is None:
            for descriptor in descriptors:
                os.close(descriptor)
            return None
        return json.loads(body), descriptors

    def read(self, count, descriptors):
        pieces = []
        while count > 0:
            piece, arrived, _, _ = socket.recv_fds(self.socket, min(count, 1 << 20), 8)
            descriptors.extend(arrived)
            if not piece:
                return None
            pieces.append(piece)
            count -= len(piece)
        return b"".join(pieces)

    def send(self, body, descriptors=()):
        text = json.dumps(body).encode()
        text = struct.pack("=Q", len(text)) + text
        sent = socket.send_fds(self.socket, [text], list(descriptors)) if descriptors else 0
        self.socket.sendall(text[sent:])
