#include "show/roofline.h"

#include <fmt/format.h>

#include <algorithm>

#include "compiler/ir/launch_work.h"
#include "compiler/targets/gpu/estimate/kernel_estimate.h"

namespace tilepilot::show {
namespace {

// A function of an element is as many operations as a GPU's units for functions are slower than its others
// (docs/profiling.md).
constexpr double kOperationsOfFunction = 16;

RooflinePicture counted(const ir::LaunchWork& work) {
  RooflinePicture picture;
  picture.bytes = work.least_bytes;
  picture.requested_bytes = work.requested_bytes;
  picture.flops = work.product_flops + work.other_flops + kOperationsOfFunction * work.functions;
  picture.exact = work.exact;
  return picture;
}

// Of the rate on 16-bit elements; 0: tensor cores do not take the type.
double tensor_share(const std::string& type, bool has_wgmma) {
  if (type == "float16" || type == "bfloat16") return 1;
  if (type == "float32" || type == "tfloat32") return 0.5;
  if (type == "int8" || type == "uint8") return 2;
  if (type == "float64") return 1.0 / 16;
  return type.starts_with("float8") && has_wgmma ? 2 : 0;
}

}  // namespace

RooflinePicture roofline_of(const ir::Kernel& kernel, const ir::VarRanges& values, const targets::gpu::Machine& machine,
                            TensorParts parts, std::string& why) {
  const ir::LaunchWork work = ir::launch_work(kernel, values);
  RooflinePicture picture = counted(work);
  const double all = static_cast<double>(machine.multiprocessors) * machine.clock;
  picture.machine = fmt::format("{}, as the tile model knows it", machine.name);
  picture.bytes_per_s = machine.memory_rate;
  const Ceiling threads{"threads, float32", machine.float_rate * all};
  const double share = tensor_share(work.product_type, machine.has_wgmma);
  const bool on_tensor_cores = work.product_flops > 0 && share > 0 && parts > 0;
  std::string type = on_tensor_cores ? work.product_type : "float16";
  if (type == "float32") type = parts > 1 ? "3xTF32" : "tfloat32";
  const Ceiling tensor{"tensor cores, " + type,
                       machine.half_rate * all * (on_tensor_cores ? share / static_cast<double>(parts) : 1)};
  picture.ceilings = on_tensor_cores ? std::vector{tensor, threads} : std::vector{threads, tensor};
  const auto block = targets::gpu::work_of(kernel, machine);
  if (!block) {
    why = "the tile model cannot time it: its grid is known at launch alone";
    return picture;
  }
  const auto estimate = targets::gpu::estimate(*block, machine);
  if (const auto* refusal = std::get_if<targets::gpu::Refusal>(&estimate)) {
    why = "the tile model cannot time it: " + refusal->reason;
    return picture;
  }
  const auto& known = std::get<targets::gpu::Estimate>(estimate);
  picture.seconds = known.seconds;
  picture.bound = known.bound;
  picture.time_from = "modelled by the tile model, not measured";
  return picture;
}

RooflinePicture roofline_of(const ir::Kernel& kernel, const ir::VarRanges& values, const ProcessorRates& rates) {
  const ir::LaunchWork work = ir::launch_work(kernel, values);
  RooflinePicture picture = counted(work);
  picture.machine = rates.name;
  picture.bytes_per_s = rates.bytes_per_s;
  const bool half = work.product_type == "float16" || work.product_type == "bfloat16";
  const Ceiling vectors{"vectors, float32", rates.single_flops}, halves{"products of 16 bits", rates.half_flops};
  picture.ceilings = half ? std::vector{halves, vectors} : std::vector{vectors};
  return picture;
}

}  // namespace tilepilot::show
