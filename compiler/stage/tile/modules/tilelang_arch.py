# `tilelang.carver.arch` for scripts: the facts about the device. What the carver makes of descriptions of GPUs is not
# here; its other modules cannot be used.
import torch


class driver:
    @staticmethod
    def get_num_sms(device_id=0):
        return torch.cuda.get_device_properties(device_id).multi_processor_count

    @staticmethod
    def get_cuda_device_properties(device_id=0):
        return torch.cuda.get_device_properties(device_id)


class TileDevice:
    def __init__(self, *arguments):
        raise NotImplementedError(f"`{type(self).__name__}` describes a GPU, and kernels run on the processor here: "
                                  "tune without the carver's hints")


class CUDA(TileDevice):
    pass


class CDNA(TileDevice):
    pass
