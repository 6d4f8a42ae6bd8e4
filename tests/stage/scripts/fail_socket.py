import math
import socket
