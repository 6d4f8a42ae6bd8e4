"""Graphs of torch as tile programs: what `torch.compile(backend="tilepilot")` and `tilepilot.optimize` do.

`capture` makes a graph of operators of what torch traced, `regions` chooses the parts that a program may compute,
`model_text` writes a part as a model, `generation` lets the command write and verify a program for it, `region_call`
runs the program where the graph is called, and `backend` decides for each call."""
