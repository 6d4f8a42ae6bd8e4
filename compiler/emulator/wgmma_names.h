// The functions of wgmma that generated code calls: "wgmma_m64n128k16_f32_f16_f16_tb" (targets/cuda/wgmma.h). On a
// device their text is assembly; here it comes from their names.
#pragma once

#include <string>

namespace tilepilot::emulator {

// Without the device's definitions of these functions.
std::string without_wgmma(const std::string& source);
// Definitions of those that the source mentions.
std::string wgmma_functions(const std::string& source);

}  // namespace tilepilot::emulator
