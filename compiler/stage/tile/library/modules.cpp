// The parts of `tilelang` that are written in Python.
#include "compiler/stage/tile/tile.h"

namespace tilepilot::embedded {
extern const char tilepilot_tilelang_arch[];
extern const char tilepilot_tilelang_autotuner[];
extern const char tilepilot_tilelang_iket[];
extern const char tilepilot_tilelang_mma[];
extern const char tilepilot_tilelang_nvcc[];
extern const char tilepilot_tilelang_param[];
extern const char tilepilot_tilelang_profiler[];
extern const char tilepilot_tilelang_roller[];
extern const char tilepilot_tilelang_search[];
extern const char tilepilot_tilelang_sparse[];
extern const char tilepilot_tilelang_template[];
extern const char tilepilot_tilelang_tensor[];
extern const char tilepilot_tilelang_testing[];
extern const char tilepilot_tilelang_tools[];
extern const char tilepilot_tilelang_tune[];
extern const char tilepilot_tilelang_utils[];
}  // namespace tilepilot::embedded

namespace tilepilot::stage {

namespace {

// One module under the names that its parts have.
constexpr char kMma[] = "from tilelang.cuda.intrinsics import *\n";

constexpr char kCarver[] =
    "from tilelang.carver.arch import *\n"
    "from tilelang.carver.roller import *\n"
    "from tilelang.carver.template import *\n";
constexpr char kBench[] = "from tilelang.profiler import *\n";
constexpr char kRoller[] = "from tilelang.carver.roller import *\n";

// Programs are simplified anyway.
constexpr char kTransform[] =
    "from tilelang import PassConfigKey\n"
    "def simplify_prim_func(function):\n"
    "    return function\n";

// Scripts import it; what it would change is upstream's generated code.
constexpr char kCallback[] =
    "def register_cuda_postproc_callback(func=None, override=True):\n"
    "    raise NotImplementedError('the generated code cannot be changed on its way to the compiler here')\n";

// What programs are compiled for is chosen outside of them: this only tells it.
constexpr char kTarget[] =
    "from tilelang import tvm\n"
    "from tilelang.contrib import nvcc\n"
    "def determine_target(target='auto', return_object=False):\n"
    "    if target == 'auto':\n"
    "        major, minor = nvcc.parse_compute_version(nvcc.get_target_compute_version())\n"
    "        target = f\"cuda -arch=sm_{major}{minor}{'a' if major >= 9 else ''}\"\n"
    "    return tvm.target.Target(target) if return_object and isinstance(target, str) else target\n";

constexpr char kTileOperator[] = "from tilelang.language import GemmWarpPolicy\n";

}  // namespace

std::vector<EmbeddedModule> tile_modules() {
  return {
      {"tilelang._search", embedded::tilepilot_tilelang_search},
      {"tilelang._tune", embedded::tilepilot_tilelang_tune},
      {"tilelang.autotuner", embedded::tilepilot_tilelang_autotuner},
      {"tilelang.backend", ""},
      {"tilelang.backend.target", kTarget},
      {"tilelang.carver", kCarver},
      {"tilelang.carver.arch", embedded::tilepilot_tilelang_arch},
      {"tilelang.carver.roller", embedded::tilepilot_tilelang_roller},
      {"tilelang.carver.roller.hint", kRoller},
      {"tilelang.carver.roller.rasterization", kRoller},
      {"tilelang.carver.template", embedded::tilepilot_tilelang_template},
      {"tilelang.contrib", ""},
      {"tilelang.contrib.nvcc", embedded::tilepilot_tilelang_nvcc},
      {"tilelang.cuda", ""},
      {"tilelang.cuda.intrinsics", embedded::tilepilot_tilelang_mma},
      {"tilelang.cuda.intrinsics.layout", ""},
      {"tilelang.cuda.intrinsics.layout.mma_layout", kMma},
      {"tilelang.cuda.intrinsics.macro", ""},
      {"tilelang.cuda.intrinsics.macro.mma_macro_generator", kMma},
      {"tilelang.cuda.intrinsics.sparse_layout", embedded::tilepilot_tilelang_sparse},
      {"tilelang.engine", ""},
      {"tilelang.engine.callback", kCallback},
      {"tilelang.engine.param", embedded::tilepilot_tilelang_param},
      {"tilelang.intrinsics", kMma},
      {"tilelang.intrinsics.mma_layout", kMma},
      {"tilelang.intrinsics.mma_macro_generator", kMma},
      {"tilelang.profiler", embedded::tilepilot_tilelang_profiler},
      {"tilelang.profiler.bench", kBench},
      {"tilelang.testing", embedded::tilepilot_tilelang_testing},
      {"tilelang.tileop", ""},
      {"tilelang.tileop.base", kTileOperator},
      {"tilelang.tools", embedded::tilepilot_tilelang_tools},
      {"tilelang.tools.cuda", ""},
      {"tilelang.tools.cuda.iket", embedded::tilepilot_tilelang_iket},
      {"tilelang.transform", kTransform},
      {"tilelang.utils", embedded::tilepilot_tilelang_utils},
      {"tilelang.utils.target", kTarget},
      {"tilelang.utils.tensor", embedded::tilepilot_tilelang_tensor},
  };
}

}  // namespace tilepilot::stage
