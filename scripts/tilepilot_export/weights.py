"""The safetensors file of an export: written tensor by tensor, without a second copy of the weights."""

import ctypes
import json

from .errors import ExportError

NAMES = {"float64": "F64", "float32": "F32", "float16": "F16", "bfloat16": "BF16", "int64": "I64", "int32": "I32",
         "int16": "I16", "int8": "I8", "uint8": "U8", "bool": "BOOL"}
# Of a tensor that does not lie in row-major order, so much is copied at a time.
CHUNK_BYTES = 16 << 20


class Weights:
    """The tensors that go into the file; tensors that are one object share an entry."""

    def __init__(self):
        self.tensors, self.keys = {}, {}

    def add(self, key, tensor):
        identity = (tensor.untyped_storage()._cdata, tensor.storage_offset(), tensor.dtype, tuple(tensor.shape),
                    tuple(tensor.stride()))
        if tensor.numel() == 0 or identity not in self.keys:
            self.keys[identity] = key
            self.tensors[key] = tensor.detach()
        return self.keys[identity]

    def write(self, path):
        header, offset = {}, 0
        for key, tensor in self.tensors.items():
            if tensor.device.type == "meta":  # of a graph alone
                continue
            dtype = str(tensor.dtype).removeprefix("torch.")
            if dtype not in NAMES:
                raise ExportError("unsupported_value", f"`{key}` has element type `{dtype}`, which is not supported")
            size = tensor.numel() * tensor.element_size()
            header[key] = {"dtype": NAMES[dtype], "shape": list(tensor.shape), "data_offsets": [offset, offset + size]}
            offset += size
        text = json.dumps(header).encode()
        text += b" " * (-len(text) % 8)
        with open(path, "wb") as file:
            file.write(len(text).to_bytes(8, "little") + text)
            for key in header:
                write_elements(file, self.tensors[key])


def write_elements(file, tensor):
    """The elements in row-major order."""
    size = tensor.numel() * tensor.element_size()
    if size == 0:
        return
    if tensor.is_contiguous() and tensor.device.type == "cpu":
        file.write((ctypes.c_char * size).from_address(tensor.data_ptr()))
    elif size <= CHUNK_BYTES or tensor.dim() == 0:
        write_elements(file, tensor.cpu().contiguous())
    else:
        rows = max(1, CHUNK_BYTES * tensor.shape[0] // size)
        for first in range(0, tensor.shape[0], rows):
            part = tensor[first:first + rows]
            write_elements(file, tensor[first:first + rows].cpu().contiguous())
