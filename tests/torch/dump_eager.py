"""What PyTorch eager computes for a model file, for the bit-for-bit test of replay.

    dump_eager.py EXPORTER MODEL.py OUTDIR INPUT_SEED FORWARD_SEED DTYPE

Exports the model to OUTDIR/reference and writes OUTDIR/eager.safetensors: inputs, outputs and the state after two calls.
"""

import argparse
import importlib.util
import os
import sys

import torch

exporter_path, model_path, out, input_seed, forward_seed, dtype = sys.argv[1:7]
spec = importlib.util.spec_from_file_location("exporter", exporter_path)
exporter = importlib.util.module_from_spec(spec)
spec.loader.exec_module(exporter)
os.makedirs(out, exist_ok=True)
exporter.torch = torch
options = argparse.Namespace(model=model_path, out=os.path.join(out, "reference"), seed=42, dtype=dtype)
exporter.export_reference(options)
torch.set_num_threads(2)
path = os.path.abspath(model_path)
module = exporter.load_module(path, exporter.read_source(path))
model = exporter.build_model(path, module, module.get_init_inputs(), 42, exporter.element_type(dtype))
tensors = {}


def record(prefix, tree):
    leaves = [leaf for leaf in torch.utils._pytree.tree_leaves(tree) if isinstance(leaf, torch.Tensor)]
    for i, leaf in enumerate(leaves):
        tensors[f"{prefix}{i}"] = leaf.detach().clone(memory_format=torch.contiguous_format)


torch.manual_seed(int(input_seed))
inputs = exporter.cast_to(module.get_inputs(), exporter.element_type(dtype))
record("input", inputs)
with torch.no_grad():
    for call in range(2):
        torch.manual_seed(int(forward_seed) + call)
        record(f"output{call}.", model(*inputs))
record("after", inputs)
for name, tensor in model.state_dict().items():
    tensors["state." + name] = tensor.detach().clone()
weights = exporter.Weights()
for name, tensor in tensors.items():
    weights.add(name, tensor)
weights.write(os.path.join(out, "eager.safetensors"))
