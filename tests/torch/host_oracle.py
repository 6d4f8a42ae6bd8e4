"""Runs the cases of a program with real PyTorch and writes what they gave, for comparison to the bit.

usage: host_oracle.py PROGRAM OUTPUT      (OUTPUT.json and OUTPUT.bin are written)
Exit code 3: this Python has no PyTorch.
"""
import importlib.util
import json
import sys
import warnings

warnings.filterwarnings("ignore")
try:
    import torch
except ImportError:
    sys.exit(3)


def describe(value, data):
    """Plain JSON for a result; the bytes of tensors go to `data`."""
    if isinstance(value, torch.Tensor):
        tensor = value.detach()
        raw = bytes(tensor.contiguous().reshape(-1).view(torch.uint8).tolist()) if tensor.numel() else b""
        start = len(data)
        data.extend(raw)
        return {
            "tensor": str(tensor.dtype).removeprefix("torch."),
            "shape": list(tensor.shape),
            "strides": list(tensor.stride()),
            "begin": start,
            "end": len(data),
        }
    if isinstance(value, (list, tuple)):
        return {"items": [describe(item, data) for item in value]}
    if isinstance(value, bool) or value is None:
        return {"value": value}
    if isinstance(value, int):
        return {"value": value}
    if isinstance(value, float):
        return {"real": value.hex()}
    if isinstance(value, dict):
        return {"items": [describe(item, data) for pair in value.items() for item in pair]}
    return {"value": str(value)}


def main():
    program, output = sys.argv[1:]
    spec = importlib.util.spec_from_file_location("program", program)
    module = importlib.util.module_from_spec(spec)
    torch.manual_seed(0)
    spec.loader.exec_module(module)
    results, data = [], bytearray()
    for index in range(module.CASES):
        with torch.no_grad():
            try:
                results.append(describe(getattr(module, f"case_{index}")(), data))
            except Exception as error:
                results.append({"error": f"{type(error).__name__}: {error}"})
    with open(output + ".json", "w") as file:
        json.dump(results, file)
    with open(output + ".bin", "wb") as file:
        file.write(data)


main()
