#include "eval/graph/roofline.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

namespace tilepilot::eval {
namespace {

struct DataSheet {
  std::string_view architecture, name;
  double bytes_per_s, half_flops, tf32_flops, single_flops;
  int64_t cache_bytes;
};
constexpr DataSheet kDataSheets[] = {
    {"sm_90a", "NVIDIA H200", 4.8e12, 989e12, 495e12, 67e12, int64_t{60} << 20},
    {"sm_80", "NVIDIA A100", 2.04e12, 312e12, 156e12, 19.5e12, int64_t{40} << 20},
};
constexpr double kGpuLaunch = 5e-6, kProcessorLaunch = 2e-6;

std::string processor_field(std::string_view field) {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (line.rfind(field, 0) == 0 && line.find(": ") != std::string::npos) return line.substr(line.find(": ") + 2);
  }
  return "";
}

double highest_frequency() {
  std::ifstream file("/sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq");
  double kilohertz = 0;
  if (file >> kilohertz && kilohertz > 0) return kilohertz * 1e3;
  const std::string megahertz = processor_field("cpu MHz");
  constexpr double kTurbo = 1.5, kUnknown = 5e9;  // above what is read now
  return megahertz.empty() ? kUnknown : std::atof(megahertz.c_str()) * 1e6 * kTurbo;
}

// Single-precision operations a cycle, of two units that multiply and add.
double flops_of_vectors() {
  const std::string flags = processor_field("flags");
  if (flags.find("avx512f") != std::string::npos) return 64;
  return flags.find("avx2") != std::string::npos ? 32 : 16;
}

double flops_per_cycle() {
  const bool has_tiles = processor_field("flags").find("amx_bf16") != std::string::npos;
  return has_tiles ? 1024 : flops_of_vectors();  // in bfloat16, which products may use
}

// Bytes a second that all threads together read and write; the best of several passes over memory beyond any cache.
double measured_bandwidth(int threads) {
  constexpr size_t kBytes = size_t{64} << 20;
  constexpr int kPasses = 4;
  const size_t part = kBytes / static_cast<size_t>(threads);
  std::vector<char> from(kBytes, 1), to(kBytes, 2);
  double best = 0;
  for (int pass = 0; pass < kPasses; ++pass) {
    auto begin = std::chrono::steady_clock::now();
    std::vector<std::thread> workers;
    for (size_t i = 0; i < static_cast<size_t>(threads); ++i) {
      workers.emplace_back([&, i] { std::memcpy(&to[i * part], &from[i * part], part); });
    }
    for (auto& worker : workers) worker.join();
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    best = std::max(best, 2.0 * static_cast<double>(kBytes) / seconds);
  }
  return best;
}

// A measurement shows less than the memory can do where others were at work, never more: the best of all is kept, and
// after this time another is made.
constexpr int64_t kSecondsBetweenMeasurements = 600;

int64_t seconds_now() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::seconds>(now).count();
}

double bandwidth(int threads, const std::filesystem::path& cache) {
  if (cache.empty()) return measured_bandwidth(threads);
  const auto file = cache / "processor.json";
  const std::string key = fmt::format("{}, {} threads", processor_field("model name"), threads);
  nlohmann::json known = nlohmann::json::parse(std::ifstream(file), nullptr, false);
  if (!known.is_object()) known = nlohmann::json::object();
  nlohmann::json& entry = known[key];
  if (!entry.is_object()) entry = nlohmann::json::object();
  const auto number_in = [&](const char* name) {
    return entry.contains(name) && entry[name].is_number() ? entry[name].get<double>() : 0.0;
  };
  const double best = number_in("bytes_per_s"), age = static_cast<double>(seconds_now()) - number_in("measured_at");
  if (best > 0 && age >= 0 && age < kSecondsBetweenMeasurements) return best;
  entry["bytes_per_s"] = std::max(best, measured_bandwidth(threads));
  entry["measured_at"] = seconds_now();
  const double rate = entry["bytes_per_s"].get<double>();
  std::ofstream(file) << known.dump(1) << "\n";  // where it cannot be written, the next run measures again
  return rate;
}

bool is_half(std::string_view dtype) {
  return dtype == "fp16" || dtype == "bf16" || dtype == "float16" || dtype == "bfloat16";
}

MachineRates rates_of(const DataSheet& sheet, std::string_view dtype) {
  // A float32 product may be made of three TF32 products, and PyTorch's convolutions are TF32 by default.
  const double products = is_half(dtype) ? sheet.half_flops : sheet.tf32_flops;
  return {std::string(sheet.name), sheet.bytes_per_s, products,   sheet.single_flops,
          sheet.single_flops,      sheet.cache_bytes, kGpuLaunch, true};
}

}  // namespace

MachineRates rates_of_gpu(std::string_view architecture, std::string_view dtype) {
  for (auto& sheet : kDataSheets) {
    if (sheet.architecture == architecture) return rates_of(sheet, dtype);
  }
  return rates_of(kDataSheets[0], dtype);
}

std::optional<MachineRates> rates_of_device(std::string_view name, std::string_view dtype) {
  auto has = [&](std::string_view part) { return name.find(part) != std::string_view::npos; };
  if (has("H200") || has("H100")) return rates_of(kDataSheets[0], dtype);
  if (has("A100")) return rates_of(kDataSheets[1], dtype);
  return std::nullopt;
}

int64_t last_level_cache() {
  const int64_t bytes = sysconf(_SC_LEVEL3_CACHE_SIZE);
  return bytes > 0 ? bytes : int64_t{32} << 20;
}

void leave_out_units_for_halves(const Graph& graph, MachineRates& rates) {
  if (rates.vector_flops <= 0 || rates.vector_flops >= rates.product_flops) return;
  const bool has_halves = std::any_of(graph.values.begin(), graph.values.end(),
                                      [](const GraphValue& value) { return is_half(value.dtype); });
  if (!has_halves) rates.product_flops = rates.other_flops = rates.vector_flops;
}

MachineRates rates_of_processor(int threads, const std::filesystem::path& cache) {
  const int cores = threads > 0 ? threads : static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  MachineRates rates;
  rates.name = fmt::format("{} on {} threads", processor_field("model name"), cores);
  rates.bytes_per_s = bandwidth(cores, cache);
  rates.product_flops = rates.other_flops = cores * highest_frequency() * flops_per_cycle();
  rates.vector_flops = cores * highest_frequency() * flops_of_vectors();
  rates.cache_bytes = last_level_cache();
  rates.launch_s = kProcessorLaunch;
  return rates;
}

Roofline roofline(const GraphCost& cost, double product_flops, const MachineRates& rates) {
  Roofline result;
  result.memory_s = static_cast<double>(cost.least_bytes) / rates.bytes_per_s;
  result.compute_s = product_flops / rates.product_flops;
  return result;
}

LeastTime least_time(const GraphCost& cost, double product_flops, const MachineRates& rates) {
  const Roofline whole = roofline(cost, product_flops, rates);
  if (cost.products == 1 && !cost.uses_parts && whole.compute_s > whole.memory_s)
    return {whole.compute_s, fmt::format("the only product, {:.3g} GFLOP at {:.3g} GFLOP/s", product_flops / 1e9,
                                         rates.product_flops / 1e9)};
  return {whole.memory_s, fmt::format("reading the inputs and weights that are needed and writing the outputs once, "
                                      "{:.3g} MB at {:.3g} GB/s",
                                      static_cast<double>(cost.least_bytes) / 1e6, rates.bytes_per_s / 1e9)};
}

double estimate_s(const NodeCost& cost, const MachineRates& rates) {
  const double work = std::max(
      {cost.bytes / rates.bytes_per_s, cost.product_flops / rates.product_flops, cost.other_flops / rates.other_flops});
  return work + cost.launches * rates.launch_s;
}

std::map<std::string, double> product_times(const GraphUses& uses, const MachineRates& rates) {
  std::map<std::string, double> times;
  for (auto& node : uses.graph().nodes) {
    const NodeCost cost = cost_of(uses, node);
    if (cost.product_flops > 0) times[node.op] = std::max(times[node.op], estimate_s(cost, rates));
  }
  return times;
}

double eager_estimate_s(const GraphUses& uses, const MachineRates& rates) {
  double total = 0;
  for (auto& node : uses.graph().nodes) total += estimate_s(cost_of(uses, node), rates);
  return total;
}

std::optional<std::string> faster_than_possible(double measured_s, const GraphCost& cost, double product_flops,
                                                const MachineRates& rates) {
  // Products: sparsity in the inputs (a causal mask, a triangle) may save half of them, a fast algorithm some more.
  constexpr double kMemoryMargin = 0.8, kProductMargin = 0.25;
  GraphCost cold = cost;
  if (cost.uses_parts) {
    cold.least_bytes = cost.output_bytes;
    product_flops = 0;
  }
  cold.least_bytes = std::max<int64_t>(0, cold.least_bytes - rates.cache_bytes);
  const Roofline bound = roofline(cold, product_flops, rates);
  const bool memory = measured_s < kMemoryMargin * bound.memory_s;
  if (!memory && measured_s >= kProductMargin * bound.compute_s) return std::nullopt;
  if (memory) {
    return fmt::format(
        "{:.1f} us is less than the {:.1f} us that {} takes to move the {:.1f} MB of inputs, weights and "
        "outputs once",
        measured_s * 1e6, bound.memory_s * 1e6, rates.name, static_cast<double>(cold.least_bytes) / 1e6);
  }
  return fmt::format("{:.1f} us is less than the {:.1f} us that {} takes at its peak for {:.3g} GFLOP of products",
                     measured_s * 1e6, bound.compute_s * 1e6, rates.name, product_flops / 1e9);
}

}  // namespace tilepilot::eval
