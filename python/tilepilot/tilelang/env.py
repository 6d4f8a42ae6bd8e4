"""`tilelang.env`: what scripts read of upstream's settings."""

import os

# Where they keep what they build themselves.
TILELANG_CACHE_DIR = os.path.join(
    os.environ.get("TILEPILOT_CACHE") or os.path.join(
        os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache"), "tilepilot"), "scripts")
