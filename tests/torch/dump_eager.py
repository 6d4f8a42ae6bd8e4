"""What PyTorch eager computes for model files, for the bit-for-bit test of replay.

    dump_eager.py EXPORTER INPUT_SEED FORWARD_SEED [MODEL.py DTYPE OUTDIR]...

Exports each model to OUTDIR/reference and writes OUTDIR/eager.safetensors: inputs, outputs and the state after two calls.
"""

import os
import sys

from export_models import export, load_exporter

exporter_path, input_seed, forward_seed = sys.argv[1:4]
exporter = load_exporter(exporter_path)
torch = exporter.torch


def leaves(prefix, tree):
    found = [leaf for leaf in torch.utils._pytree.tree_leaves(tree) if isinstance(leaf, torch.Tensor)]
    contiguous = torch.contiguous_format
    return {f"{prefix}{i}": leaf.detach().clone(memory_format=contiguous) for i, leaf in enumerate(found)}


def dump(model_path, dtype, out):
    export(exporter, model_path, dtype, out)
    torch.set_num_threads(2)
    path = os.path.abspath(model_path)
    module = exporter.load_module(path, exporter.read_source(path))
    model = exporter.build_model(path, module, module.get_init_inputs(), 42, exporter.element_type(dtype))
    torch.manual_seed(int(input_seed))
    inputs = exporter.cast_to(module.get_inputs(), exporter.element_type(dtype))
    tensors = leaves("input", inputs)
    with torch.no_grad():
        for call in range(2):
            torch.manual_seed(int(forward_seed) + call)
            tensors |= leaves(f"output{call}.", model(*inputs))
    tensors |= leaves("after", inputs)
    for name, tensor in model.state_dict().items():
        tensors["state." + name] = tensor.detach().clone()
    weights = exporter.Weights()
    for name, tensor in tensors.items():
        weights.add(name, tensor)
    weights.write(os.path.join(out, "eager.safetensors"))


for job in range(4, len(sys.argv), 3):
    dump(*sys.argv[job : job + 3])
