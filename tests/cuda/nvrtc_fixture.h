// NVRTC for tests, and the hand-written kernels in tests/cuda/kernels. Where no NVRTC is found tests skip, aloud.
#pragma once

#include <gtest/gtest.h>

#include "compiler/runtime/cuda/nvrtc.h"

namespace tilepilot::testing {

// Where tests look for it: the usual places, the repository's .venv, and the folder that CMake was told.
runtime::cuda::NvrtcOptions nvrtc_options();
runtime::cuda::Nvrtc& nvrtc();
// Why there is none; empty if there is.
const std::string& nvrtc_missing();

// kernels/NAME.cu, and its unit: the prelude, and what generated text it calls.
std::filesystem::path kernel_path(const std::string& name);
std::string kernel_unit(const std::string& name);
std::vector<std::string> kernel_files();

#define SKIP_WITHOUT_NVRTC() \
  if (!::tilepilot::testing::nvrtc_missing().empty()) GTEST_SKIP() << ::tilepilot::testing::nvrtc_missing()

}  // namespace tilepilot::testing
