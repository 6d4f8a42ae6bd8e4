import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "beside"))
from shared_by_scripts import answer

print(answer())
