// The least time that a reference can take on a machine: the bytes that any program must move over the memory's rate,
// and the operations that no exact identity removes over the peak rate. Generous in every term, so that what is faster
// was not computed.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>

#include "eval/graph/graph_cost.h"

namespace tilepilot::eval {

struct MachineRates {
  std::string name;
  double bytes_per_s = 0;
  double product_flops = 0;  // of products in `dtype`, at the peak of the units that are fastest at it
  double other_flops = 0;
  double vector_flops = 0;  // of float32 in vectors, without units for products
  int64_t cache_bytes = 0;  // of the last level: what lies there need not come from memory
  double launch_s = 0;      // of a kernel, in eager
  bool assumed = false;     // from a data sheet, for a machine that is not here
};

// Of the targets `cuda:sm_90a` and `cuda:sm_80`: the fastest product with that architecture (H200, A100). Peaks, which
// no program exceeds.
MachineRates rates_of_gpu(std::string_view architecture, std::string_view dtype);
// Of a device by its own name ("NVIDIA H200"): peaks that are not below its own; nullopt: an unknown device, which may
// be faster than all that are known.
std::optional<MachineRates> rates_of_device(std::string_view name, std::string_view dtype);
// Of this processor: its memory's rate is measured (about 50 ms), the rest follows from cores, frequency and vectors.
// The best measurement so far is kept in `cache`, by the processor's name, and another is made after ten minutes; an
// empty `cache`: measured each time. The rate of products is that of bfloat16 where the processor has units for it.
MachineRates rates_of_processor(int threads, const std::filesystem::path& cache);
// For a processor and a graph without values of 16 bits: products run in vectors, not in units for bfloat16. Rates
// without `vector_flops` (of a GPU, whose dtype is known) stay as they are.
void leave_out_units_for_halves(const Graph& graph, MachineRates& rates);
// Bytes of this processor's last cache.
int64_t last_level_cache();

struct Roofline {
  double memory_s = 0, compute_s = 0;
  double least_s() const { return memory_s > compute_s ? memory_s : compute_s; }
  const char* bound() const { return memory_s >= compute_s ? "memory" : "compute"; }
};
// `product_flops`: those of the graph that no shortcut removes.
Roofline roofline(const GraphCost& cost, double product_flops, const MachineRates& rates);

// What no program for the model takes less than, however it computes: to read the inputs and weights that the outputs
// need and write the outputs once, at the memory's rate, or, where the model has one product and all of it is used,
// that product at the peak. Several products may be done with fewer operations in another order.
struct LeastTime {
  double s = 0;  // 0: not known
  std::string
      words;  // "reading the inputs and weights that are needed and writing the outputs once, 25.2 MB at 9.74 GB/s"
};
LeastTime least_time(const GraphCost& cost, double product_flops, const MachineRates& rates);

// Seconds that eager takes for one operator by the rates, its launches included.
double estimate_s(const NodeCost& cost, const MachineRates& rates);
// Of a graph's products and convolutions by operator ("aten::linear"): the seconds of the one that takes longest by the
// rates.
std::map<std::string, double> product_times(const GraphUses& uses, const MachineRates& rates);
// What eager takes by the same rates: each operator's bytes or operations, and a launch each.
double eager_estimate_s(const GraphUses& uses, const MachineRates& rates);

// A measured time that is below the roofline by more than any error of the model: the sentence that says so. Tensors
// that fit the last cache are exempt from the bound of memory, and so is all but the outputs where the graph uses parts
// of what it computes. nullopt: there is nothing to say.
std::optional<std::string> faster_than_possible(double measured_s, const GraphCost& cost, double product_flops,
                                                const MachineRates& rates);

}  // namespace tilepilot::eval
