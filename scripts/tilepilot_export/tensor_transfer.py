"""Tensors between the judge and this process, beside its messages (wire.py): eval/worker/tensor_transfer.cpp."""

import ctypes
import fcntl
import mmap
import os

import torch

ALIGNMENT = 64
SEALS = fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_WRITE


def unpack(description, descriptors, device):
    """The tensors of a message, in fresh memory, with the strides that they have there."""
    try:
        size = os.fstat(descriptors[0]).st_size if descriptors else 0
        memory = mmap.mmap(descriptors[0], size, access=mmap.ACCESS_COPY) if size else b""
        return [read_tensor(entry, memory, device) for entry in description]
    finally:
        for number in descriptors:
            os.close(number)


def read_tensor(entry, memory, device):
    dtype, shape, strides = getattr(torch, entry["dtype"]), entry["shape"], entry["strides"]
    if 0 in shape:
        return torch.empty_strided(shape, strides, dtype=dtype, device=device)
    span = 1 + sum((extent - 1) * stride for extent, stride in zip(shape, strides))
    data = torch.frombuffer(memory, dtype=torch.uint8, count=span * dtype.itemsize, offset=entry["offset"])
    data = data.view(dtype)
    if any(stride == 0 and extent > 1 for extent, stride in zip(shape, strides)):
        return data.to(device, copy=True).as_strided(shape, strides)
    return torch.empty_strided(shape, strides, dtype=dtype, device=device).copy_(data.as_strided(shape, strides))


def pack(tensors):
    """(description, descriptors) of a sealed memory file that holds their elements, row-major."""
    file = os.memfd_create("tilepilot-tensors", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    description, offset = [], 0
    for tensor in tensors:
        content = tensor.detach().resolve_conj().resolve_neg().to("cpu").contiguous()
        size = content.numel() * content.element_size()
        description.append({"dtype": str(tensor.dtype).removeprefix("torch."), "shape": list(tensor.shape),
                            "strides": list(tensor.stride()), "offset": offset, "on_gpu": False})
        write(file, content.data_ptr(), size, offset)
        offset = -(-(offset + size) // ALIGNMENT) * ALIGNMENT
    os.ftruncate(file, offset)
    fcntl.fcntl(file, fcntl.F_ADD_SEALS, SEALS | fcntl.F_SEAL_SEAL)
    return description, [file]


def write(file, address, size, offset):
    done = 0
    while done < size:
        piece = (ctypes.c_char * min(size - done, 1 << 30)).from_address(address + done)
        done += os.pwrite(file, piece, offset + done)
