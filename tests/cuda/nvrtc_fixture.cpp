#include "tests/cuda/nvrtc_fixture.h"

#include "compiler/diagnostics/render.h"
#include "compiler/targets/cuda/prelude.h"
#include "compiler/targets/cuda/wgmma.h"
#include "tests/golden.h"

namespace tilepilot::testing {

using runtime::cuda::Nvrtc;

runtime::cuda::NvrtcOptions nvrtc_options() {
  runtime::cuda::NvrtcOptions options;
  if (const std::string folder = TILEPILOT_CUDA_FOLDER; !folder.empty()) options.folders.emplace_back(folder);
  std::error_code ignored;
  const std::filesystem::path environment = std::filesystem::path(TILEPILOT_SOURCE_DIR) / ".venv" / "lib";
  for (const auto& entry : std::filesystem::directory_iterator(environment, ignored))
    options.folders.push_back(entry.path() / "site-packages");
  for (const std::filesystem::path& folder : runtime::cuda::default_cuda_folders()) options.folders.push_back(folder);
  options.cache = TILEPILOT_KERNEL_CACHE;
  return options;
}

Nvrtc& nvrtc() {
  static Nvrtc instance(nvrtc_options());
  return instance;
}

const std::string& nvrtc_missing() {
  static const std::string reason = [] {
    const auto version = nvrtc().version();
    return version.ok() ? std::string()
                        : "no NVRTC here, which `scripts/setup --tests` installs: " + version.error().message;
  }();
  return reason;
}

std::string kernel_unit(const std::string& name) {
  std::string generated;
  if (name == "hopper") {
    targets::gpu::Wgmma product{.a = ir::kFloat16, .b = ir::kFloat16, .n = 32};
    generated = targets::cuda::wgmma_function(product);
    product.a_in_registers = true;
    generated += targets::cuda::wgmma_function(product);
    generated = "#if __CUDA_ARCH__ >= 900\n" + generated + "#endif\n";
  }
  return targets::cuda::prelude() + generated + "#line 1 \"" + name + ".cu\"\n" + read_text(kernel_path(name));
}

std::filesystem::path kernel_path(const std::string& name) { return tests_path("cuda/kernels/" + name + ".cu"); }

std::vector<std::string> kernel_files() { return stems_in("cuda/kernels", ".cu"); }

}  // namespace tilepilot::testing
