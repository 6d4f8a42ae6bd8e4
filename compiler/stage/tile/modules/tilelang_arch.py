# `tilelang.carver.arch` for scripts: descriptions of devices. Where kernels run on a GPU it is that one; elsewhere what
# the model of tile sizes knows of the GPU that code is generated for, or of an H200.
import _tilepilot_device as gpu
import _tilepilot_limits as limits
import _tilepilot_tuning as native
import torch

# Targets whose tiles the model knows.
ARCHITECTURES = {"80": "sm_80", "90": "sm_90a"}


class driver:
    @staticmethod
    def get_num_sms(device_id=0):
        return torch.cuda.get_device_properties(device_id).multi_processor_count

    @staticmethod
    def get_cuda_device_properties(device_id=0):
        return torch.cuda.get_device_properties(device_id)


def check_sm_version(arch):
    """90 for "sm_90a"; -1 for what is no CUDA architecture."""
    digits = arch[3:] if arch.startswith("sm_") else arch
    digits = digits.rstrip("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")
    return int(digits) if digits.isdigit() else -1


class TileDevice:
    pass


class CUDA(TileDevice):
    """`target` may name an architecture: "cuda -arch=sm_80"."""

    def __init__(self, target="cuda"):
        self.target = target
        named = [check_sm_version(word.partition("=")[2]) for word in str(target).split() if word.startswith("-arch=")]
        self.sm_version = named[0] if named else check_sm_version(limits.architecture or "sm_90a")
        if str(self.sm_version) not in ARCHITECTURES:
            raise NotImplementedError(f"tile sizes are known for sm_80 and sm_90a, not for `{target}`")
        self.architecture = ARCHITECTURES[str(self.sm_version)]
        own = gpu.is_gpu and self.architecture == limits.architecture
        self.compute_max_core = gpu.multiprocessors if own else native.hardware(self.description())["multiprocessors"]
        facts = native.hardware(self.description())
        self.name = gpu.name if own else facts["name"]
        self.platform = "CUDA"
        self.compute_capability = str(self.sm_version)
        self.smem_cap = facts["block_shared_bytes"]
        self.max_smem_usage = facts["shared_bytes"]
        self.l2_cache_size_bytes = facts["cache_bytes"]
        self.warp_size = 32
        self.reg_cap = 65536
        self.sm_partition = 4
        self.transaction_size = [32, 128]
        # Megabytes of a second, of memory and of shared memory.
        self.bandwidth = [int(facts["memory_rate"] / 1e6), 12080]

    def description(self):
        return {"architecture": self.architecture, "multiprocessors": getattr(self, "compute_max_core", None)}

    def get_avaliable_tensorintrin_shapes(self):
        return [[16, 16]] if self.sm_version < 90 else [[16, 16], [64, 8]]

    def __repr__(self):
        return f"CUDA({self.target})"


class CDNA(TileDevice):
    def __init__(self, target="hip"):
        raise NotImplementedError("there is no model of AMD's GPUs here: tune without the carver's hints")


def is_cuda_arch(arch):
    return isinstance(arch, CUDA)


def is_volta_arch(arch):
    return False


def is_ampere_arch(arch):
    return is_cuda_arch(arch) and 80 <= arch.sm_version < 89


def is_ada_arch(arch):
    return False


def is_hopper_arch(arch):
    return is_cuda_arch(arch) and arch.sm_version == 90


def has_mma_support(arch):
    return is_cuda_arch(arch)


def is_cdna_arch(arch):
    return isinstance(arch, CDNA)


def is_tensorcore_supported_precision(in_dtype, accum_dtype, arch):
    pairs = {("bfloat16", "float32"), ("float16", "float32"), ("float16", "float16"), ("int8", "int32")}
    if is_hopper_arch(arch):
        pairs |= {("float8_e5m2", "float32"), ("float8_e4m3", "float32")}
    return (str(in_dtype), str(accum_dtype)) in pairs


def get_arch(target="cuda"):
    if str(target).startswith("hip"):
        return CDNA(target)
    return CUDA(target)


def auto_infer_current_arch():
    return get_arch("cuda")
