#include "compiler/ir/text/print_form.h"

#include <utility>

namespace tilepilot::ir {

PrintForm print_form(DType type) {
  static constexpr std::pair<DType, PrintForm> kForms[] = {
      {kInt8, {"signed char", "%d"}},      {kUInt8, {"unsigned char", "%u"}}, {kInt16, {"short", "%d"}},
      {kUInt16, {"unsigned short", "%u"}}, {kInt32, {"int", "%d"}},           {kUInt32, {"uint", "%u"}},
      {kInt64, {"long", "%ld"}},           {kUInt64, {"ulong", "%lu"}},       {kFloat16, {"half_t", "%f"}},
      {kBFloat16, {"bfloat16_t", "%f"}},   {kFloat32, {"float", "%f"}},       {kFloat64, {"double", "%f"}},
      {kFloat8E4M3, {"fp8_e4_t", "%f"}},   {kFloat8E5M2, {"fp8_e5_t", "%f"}}, {kBool, {"bool", "%s"}},
  };
  for (const auto& [known, form] : kForms) {
    if (known == type) return form;
  }
  return {"unknown", type.is_float() ? "%f" : "%d"};
}

}  // namespace tilepilot::ir
