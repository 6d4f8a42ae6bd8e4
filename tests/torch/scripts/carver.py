# What the carver recommends, in the words of examples; each template's program with the first hint.
import tilelang
import tilelang.language as T
import torch
from tilelang import carver
from tilelang.carver.arch import CDNA, CUDA, auto_infer_current_arch, is_ampere_arch, is_hopper_arch
from tilelang.carver.roller.rasterization import NoRasterization
from tilelang.carver.template import (ConvTemplate, ElementwiseTemplate, FlashAttentionTemplate, GEMVTemplate,
                                      GeneralReductionTemplate, MatmulTemplate)


def get_configs(M, N, K, arch, topk=10):
    template = MatmulTemplate(M=M, N=N, K=K, in_dtype=T.float16, out_dtype=T.float16, accum_dtype=T.float32)
    configs = []
    for hint in template.with_arch(arch).recommend_hints(topk=topk):
        block_m, block_n = hint.block
        warp_m, warp_n = hint.warp
        configs.append({
            "block_M": block_m,
            "block_N": block_n,
            "block_K": hint.rstep[0],
            "num_stages": hint.pipeline_stage if hint.pipeline_stage > 1 else 0,
            "thread_num": (block_m // warp_m) * (block_n // warp_n) * 32,
            "enable_rasteration": hint.rasterization_plan is not NoRasterization,
        })
    return configs


hopper, ampere = auto_infer_current_arch(), CUDA("cuda -arch=sm_80")
print(is_hopper_arch(hopper), is_ampere_arch(ampere), hopper.compute_max_core, ampere.compute_max_core, ampere.smem_cap)
print(get_configs(8192, 8192, 8192, hopper)[0])
print(len(get_configs(8192, 8192, 8192, hopper)), len(get_configs(8192, 8192, 8192, hopper, topk=3)))
small = get_configs(1024, 1024, 1024, hopper)[0]
print((1024 // small["block_M"]) * (1024 // small["block_N"]) >= 120)
for arch in (hopper, ampere):
    for config in get_configs(4096, 1000, 777, arch, topk=40):
        shared = config["num_stages"] * (config["block_M"] + config["block_N"]) * config["block_K"] * 2
        assert shared <= arch.smem_cap and config["thread_num"] in (128, 256), config
hint = carver.FlashAttentionTemplate(batch_size=4, num_heads=32, seq_length=4096, seq_kv_length=4096,
                                     head_dim=128).with_arch(hopper).recommend_default_config()
print(hint, hint.ms < 5)
print(GeneralReductionTemplate("SSR", [64, 128, 1024]).with_arch(hopper).recommend_default_config().rstep)
for wrong in (lambda: CDNA("hip"), lambda: CUDA("cuda -arch=sm_75"), lambda: MatmulTemplate(M=0, N=1, K=1),
              lambda: GeneralReductionTemplate("SX", [1, 2]), lambda: MatmulTemplate(1, 1, 1, in_dtype="text").recommend_hints()):
    try:
        wrong()
    except (NotImplementedError, AssertionError, ValueError) as error:
        print(type(error).__name__, error)


def run(template, *inputs, out_idx=-1):
    return tilelang.compile(template.equivalent_function(), out_idx=out_idx)(*inputs)


def near(actual, expected):
    torch.testing.assert_close(actual.float(), expected.float(), rtol=2e-2, atol=2e-2)


torch.manual_seed(0)
a, b = torch.randn(48, 64), torch.randn(40, 64)
kinds = {"in_dtype": "float32", "out_dtype": "float32", "accum_dtype": "float32"}
near(run(MatmulTemplate(48, 40, 64, **kinds), a, b), a @ b.T)
near(run(MatmulTemplate(48, 40, 64, trans_A=True, trans_B=False, **kinds), a.T.contiguous(), b.T.contiguous()), a @ b.T)
near(run(MatmulTemplate(48, 40, 64, with_bias=True, **kinds), a, b, b[:, 0].contiguous()), a @ b.T + b[:, 0])
near(run(GEMVTemplate(N=40, K=64, **kinds), a[:1].contiguous(), b), a[:1] @ b.T)
near(run(ElementwiseTemplate([48, 64], dtype="float32"), a), a + 1)
near(run(GeneralReductionTemplate("SR", [48, 64], dtype="float32"), a), a.sum(1))
image, filters = torch.randn(2, 8, 8, 4), torch.randn(3, 3, 4, 16)
expected = torch.nn.functional.conv2d(image.permute(0, 3, 1, 2), filters.permute(3, 2, 0, 1), stride=2, padding=1)
near(run(ConvTemplate(N=2, C=4, H=8, W=8, F=16, K=3, S=2, D=1, P=1, **kinds), image, filters), expected.permute(0, 2, 3, 1))
q, k, v = (torch.randn(2, 2, 70, 16) for _ in range(3))
for causal in (False, True):
    template = FlashAttentionTemplate(2, 2, 16, 70, 70, is_causal=causal, **kinds)
    near(run(template, q, k, v), torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=causal))
from tilelang.tools import Analyzer

analysed = Analyzer.analysis(MatmulTemplate(256, 256, 256).equivalent_function(), ampere)
print(analysed.total_flops == 2 * 256**3, analysed.total_global_bytes > 3 * 2 * 256**2, analysed.estimated_time < 1e-3)
policy = T.GemmWarpPolicy.from_warp_partition
print([policy(4, 1), policy(1, 4), policy(2, 2)] == [T.GemmWarpPolicy.FullRow, T.GemmWarpPolicy.FullCol, T.GemmWarpPolicy.Square])
print("all programs compute what they should")
