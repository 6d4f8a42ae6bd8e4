import math
import socket

print(math.pi)
socket.create_connection(("localhost", 1))
