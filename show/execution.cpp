#include "show/execution.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <bit>

#include "compiler/emulator/backend.h"
#include "compiler/runtime/arguments.h"

namespace tilepilot::show {
namespace {

// Zeros, of which only what is touched takes memory.
class Zeros {
 public:
  explicit Zeros(int64_t bytes) : bytes_(static_cast<size_t>(std::max<int64_t>(bytes, 1))) {
    void* made = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (made != MAP_FAILED) data_ = made;
  }
  ~Zeros() {
    if (data_ != nullptr) munmap(data_, bytes_);
  }
  Zeros(Zeros&& other) noexcept : data_(std::exchange(other.data_, nullptr)), bytes_(other.bytes_) {}
  Zeros(const Zeros&) = delete;
  Zeros& operator=(const Zeros&) = delete;
  void* data() const { return data_; }  // null: there is no memory

 private:
  void* data_ = nullptr;
  size_t bytes_;
};

int64_t bytes_of(const ir::BufferData& buffer, const ir::VarRanges& values) {
  int64_t elements = 1;
  for (size_t axis = 0; axis < buffer.shape.size(); ++axis) {
    const int64_t extent = std::max<int64_t>(0, runtime::evaluate(buffer.shape[axis], values));
    if (buffer.strides.empty())
      elements *= extent;
    else
      elements = extent == 0 ? 0 : elements + (extent - 1) * runtime::evaluate(buffer.strides[axis], values);
  }
  return elements * buffer.type.bytes();
}

struct Tensors {
  std::vector<Zeros> memory;
  emulator::EmulatedArguments arguments;
  std::string failure;
};

Tensors tensors_of(const ir::Program& program, const ir::VarRanges& values, int64_t most_bytes) {
  Tensors tensors;
  std::vector<ir::Buffer> buffers;
  for (const auto& parameter : program.parameters)
    if (const auto* buffer = std::get_if<ir::Buffer>(&parameter)) buffers.push_back(*buffer);
  buffers.insert(buffers.end(), program.workspaces.begin(), program.workspaces.end());
  int64_t all = 0;
  for (const ir::Buffer& buffer : buffers) {
    const int64_t bytes = bytes_of(*buffer, values);
    all += bytes;
    if (all > most_bytes || bytes < 0) {
      tensors.failure =
          fmt::format("its tensors take more than {} GB, which is the most that is emulated here", most_bytes >> 30);
      return tensors;
    }
    tensors.memory.emplace_back(bytes);
    if (tensors.memory.back().data() == nullptr) {
      tensors.failure = fmt::format("there is no memory for the {} bytes of `{}`", bytes, buffer->name);
      return tensors;
    }
    tensors.arguments.buffers.push_back({tensors.memory.back().data(), bytes, buffer->name, true});
  }
  const auto value_of = [&](const ir::Var& var) {
    if (var->type.is_float()) return std::bit_cast<int64_t>(1.0);
    const auto found = values.find(var.get());
    return found == values.end() ? int64_t{1} : found->second.lo;
  };
  for (const auto& parameter : program.parameters)
    if (const auto* var = std::get_if<ir::Var>(&parameter)) tensors.arguments.scalars.push_back(value_of(*var));
  for (const ir::Var& symbol : program.symbols) tensors.arguments.scalars.push_back(value_of(symbol));
  return tensors;
}

template <class Visit>
void each_unknown(const ir::Program& program, const Visit& visit) {
  for (const auto& parameter : program.parameters)
    if (const auto* var = std::get_if<ir::Var>(&parameter); var && !(*var)->type.is_float()) visit(*var);
  for (const ir::Var& symbol : program.symbols) visit(symbol);
}

}  // namespace

ir::VarRanges values_of(const ir::Program& program, const std::map<std::string, int64_t>& extents) {
  ir::VarRanges values;
  each_unknown(program, [&](const ir::Var& var) {
    const auto given = extents.find(var->name);
    const int64_t value = var->type.is_bool() ? 1 : given == extents.end() ? kAssumedExtent : given->second;
    values[var.get()] = {value, value};
  });
  return values;
}

std::vector<std::string> assumed_names(const ir::Program& program, const std::map<std::string, int64_t>& extents) {
  std::vector<std::string> names;
  each_unknown(program, [&](const ir::Var& var) {
    if (!extents.contains(var->name)) names.push_back(var->name);
  });
  return names;
}

namespace {

Execution execute_one(emulator::EmulatedCode& code, const targets::cuda::Launch& launch, Tensors& tensors,
                      const ir::VarRanges& values, const ExecutionOptions& options) {
  Execution execution;
  emulator::EmulatedLaunch emulated = emulator::emulated(launch, values, options.sources);
  const int64_t blocks = emulated.grid[0] * emulated.grid[1] * emulated.grid[2];
  const int64_t units = blocks / (emulated.cluster[0] * emulated.cluster[1] * emulated.cluster[2]);
  if (options.block >= units) {
    execution.failure = fmt::format("it has {} blocks{}, none of them is block {}", units,
                                    units == blocks ? "" : " of clusters", options.block);
    return execution;
  }
  if (emulated.cooperative && blocks > 64) {
    execution.failure =
        fmt::format("its {} blocks wait for each other, and the emulator would have to run all", blocks);
    return execution;
  }
  tensors.arguments.maps.clear();
  for (const targets::cuda::TensorMap& map : launch.maps)
    tensors.arguments.maps.push_back(emulator::encoded(map, values));
  emulator::StepLog log(options.most_steps, options.most_products);
  emulator::Options checks{.check_races = false, .check_uninitialised = false};
  checks.first_block = options.block;
  checks.most_blocks = 1;
  checks.steps = &log;
  auto report = emulator::run(code, emulated, tensors.arguments, checks);
  if (!report) {
    execution.failure = report.error().message;
    return execution;
  }
  execution.is_cut = log.is_cut();
  execution.steps = log.steps();
  for (const emulator::Defect& defect : report->defects)
    execution.defects.push_back(
        fmt::format("{}: {} ({})", name_of(defect.kind), defect.message, spelled(defect.second)));
  return execution;
}

}  // namespace

std::vector<Execution> execute(const ir::Program& program, const targets::cuda::GeneratedCode& code,
                               const ExecutionOptions& options) {
  std::vector<Execution> all(code.launches.size());
  const auto fail = [&](const std::string& why) {
    for (Execution& one : all) one.failure = why;
    return all;
  };
  const ir::VarRanges values = values_of(program, options.extents);
  Tensors tensors = tensors_of(program, values, options.most_bytes);
  if (!tensors.failure.empty()) return fail(tensors.failure);
  runtime::Toolchain toolchain(emulator::toolchain_options(options.toolchain));
  std::vector<std::string> functions;
  for (const targets::cuda::Launch& launch : code.launches) functions.push_back(launch.function);
  DiagnosticList warnings;
  auto emulated = emulator::compile(code.source, functions, toolchain, warnings);
  if (!emulated)
    return fail(program.sources.empty() ? emulated.error().message
                                        : "it has source of its own, which does not compile for the emulator");
  for (size_t k = 0; k < all.size(); ++k) all[k] = execute_one(**emulated, code.launches[k], tensors, values, options);
  return all;
}

}  // namespace tilepilot::show
