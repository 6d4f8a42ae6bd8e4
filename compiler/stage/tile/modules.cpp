// The parts of `tilelang` that are written in Python.
#include "compiler/stage/tile/tile.h"

namespace tilepilot::embedded {
extern const char tilepilot_tilelang_arch[];
extern const char tilepilot_tilelang_autotuner[];
extern const char tilepilot_tilelang_nvcc[];
extern const char tilepilot_tilelang_param[];
extern const char tilepilot_tilelang_profiler[];
extern const char tilepilot_tilelang_tensor[];
extern const char tilepilot_tilelang_testing[];
extern const char tilepilot_tilelang_utils[];
}  // namespace tilepilot::embedded

namespace tilepilot::stage {

std::vector<EmbeddedModule> tile_modules() {
  return {
      {"tilelang.autotuner", embedded::tilepilot_tilelang_autotuner},
      {"tilelang.carver", ""},
      {"tilelang.carver.arch", embedded::tilepilot_tilelang_arch},
      {"tilelang.contrib", ""},
      {"tilelang.contrib.nvcc", embedded::tilepilot_tilelang_nvcc},
      {"tilelang.engine", ""},
      {"tilelang.engine.param", embedded::tilepilot_tilelang_param},
      {"tilelang.profiler", embedded::tilepilot_tilelang_profiler},
      {"tilelang.testing", embedded::tilepilot_tilelang_testing},
      {"tilelang.utils", embedded::tilepilot_tilelang_utils},
      {"tilelang.utils.tensor", embedded::tilepilot_tilelang_tensor},
  };
}

}  // namespace tilepilot::stage
