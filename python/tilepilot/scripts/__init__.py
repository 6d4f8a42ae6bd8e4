"""What the parts of `tilelang` that are written in Python (compiler/stage/tile/modules) ask of where they run: they import
`_tilepilot_device`, `_tilepilot_limits` and `_tilepilot_tuning`, which are the modules here."""
