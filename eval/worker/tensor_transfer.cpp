#include "eval/worker/tensor_transfer.h"

#include <ATen/Functions.h>
#include <ATen/core/grad_mode.h>
#include <c10/util/Exception.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "eval/torch/element_type.h"
#include "eval/torch/gpu.h"
#include "eval/torch/span.h"

namespace tilepilot::eval {
namespace {

using nlohmann::json;
using runtime::cuda::SharedMemory;

constexpr size_t kAlignment = 64;
constexpr size_t kMaxRank = 64;
constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE;

size_t aligned(size_t size) { return (size + kAlignment - 1) / kAlignment * kAlignment; }

Error no_memory(size_t size) {
  return make_error(DiagnosticKind::out_of_memory, {}, fmt::format("{} bytes for tensors could not be had", size));
}

int64_t sum_of(int64_t a, int64_t b) { return __builtin_add_overflow(a, b, &a) ? INT64_MAX : a; }

bool is_too_much(int64_t bytes, const TensorTransfer& transfer) {
  return transfer.direction == Direction::from_candidate && bytes > transfer.most_bytes;
}

Error too_much(int64_t bytes, const TensorTransfer& transfer) {
  return make_error(DiagnosticKind::out_of_memory, {},
                    fmt::format("its tensors have elements of {:.2f} GB in all: for this model they may have {:.2f} GB",
                                1e-9 * static_cast<double>(bytes), 1e-9 * static_cast<double>(transfer.most_bytes)));
}

Error not_whole() { return make_error(DiagnosticKind::worker_unavailable, {}, "tensors did not arrive whole"); }

// Bytes that both processes see.
struct Region {
  std::shared_ptr<void> owner;
  char* data = nullptr;
  size_t size = 0;
  c10::Device device = c10::DeviceType::CPU;

  at::Tensor tensor(size_t offset, at::IntArrayRef shape, at::IntArrayRef strides, at::ScalarType type) const {
    return at::from_blob(
        data + offset, shape, strides, [owner = owner](void*) {}, at::TensorOptions(type).device(device), device);
  }
};

std::optional<Region> map_file(int file, size_t size, int sharing) {
  if (size == 0) return Region{};
  void* data = mmap(nullptr, size, PROT_READ | PROT_WRITE, sharing, file, 0);
  if (data == MAP_FAILED) return std::nullopt;
  return Region{{data, [size](void* mapped) { munmap(mapped, size); }}, static_cast<char*>(data), size};
}

// Until the GPU is done with what reads or writes there: memory is unmapped at once, whatever a stream still has to do.
Region region_of(std::shared_ptr<const SharedMemory> memory, c10::Device device) {
  auto* data = reinterpret_cast<char*>(static_cast<uintptr_t>(memory->address()));
  const auto size = static_cast<size_t>(memory->size());
  const auto release = [memory = std::move(memory), device](void*) mutable {
    try {
      if (!device.is_cpu()) synchronize_gpu();
    } catch (const std::exception&) {}  // told where the GPU is asked for something next
    memory.reset();
  };
  return {{data, release}, data, size, device};
}

// What LibTorch has freed and keeps is not free to others.
Result<SharedMemory> create_shared(const TensorTransfer& transfer, int64_t bytes) {
  auto memory = SharedMemory::create(transfer.gpu, bytes);
  if (memory.ok() || memory.error().kind != DiagnosticKind::out_of_memory || transfer.device.is_cpu()) return memory;
  release_unused_gpu_memory();
  return SharedMemory::create(transfer.gpu, bytes);
}

bool stays_on_gpu(const at::Tensor& tensor, const TensorTransfer& transfer) {
  return transfer.gpu && tensor.device() == transfer.device;
}

// What travels of a tensor, row-major.
at::Tensor content_of(const at::Tensor& tensor, const TensorTransfer& transfer) {
  return transfer.direction == Direction::to_candidate && tensor.numel() > 0 ? span_of(tensor) : tensor;
}

std::vector<int64_t> row_major(at::IntArrayRef shape) {
  std::vector<int64_t> strides(shape.size(), 1);
  for (size_t axis = shape.size(); axis-- > 1;) strides[axis - 1] = strides[axis] * std::max<int64_t>(shape[axis], 1);
  return strides;
}

void write_tensors(const std::vector<at::Tensor>& tensors, const json& description, const TensorTransfer& transfer,
                   const Region& into, bool on_gpu) {
  at::NoGradGuard no_grad;
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (tensors[i].numel() == 0 || description[i].at("on_gpu").get<bool>() != on_gpu) continue;
    const at::Tensor content = content_of(tensors[i], transfer);
    into.tensor(description[i].at("offset"), content.sizes(), row_major(content.sizes()), content.scalar_type())
        .copy_(content);
  }
}

// What a description says of a tensor.
struct Entry {
  at::ScalarType type = at::kFloat;
  std::vector<int64_t> shape, strides;
  size_t offset = 0, bytes = 0;  // of the memory that it takes
  bool on_gpu = false;
};

bool are_integers(const json& node) {
  return node.is_array() &&
         std::all_of(node.begin(), node.end(), [](const json& item) { return item.is_number_integer(); });
}

// The bytes that a tensor spans; nullopt: more than there can be. Axes without elements count as one, as LibTorch
// multiplies all others.
std::optional<size_t> spanned_bytes(const Entry& entry) {
  const auto element = static_cast<int64_t>(c10::elementSize(entry.type));
  int64_t last = 0, all = element, bytes = 0;
  bool empty = false;
  for (size_t axis = 0; axis < entry.shape.size(); ++axis) {
    const int64_t extent = std::max<int64_t>(entry.shape[axis], 1);
    int64_t along = 0;
    if (entry.shape[axis] < 0 || entry.strides[axis] < 0 || __builtin_mul_overflow(all, extent, &all) ||
        __builtin_mul_overflow(extent - 1, entry.strides[axis], &along) || __builtin_add_overflow(last, along, &last))
      return std::nullopt;
    empty = empty || entry.shape[axis] == 0;
  }
  if (__builtin_add_overflow(last, 1, &last) || __builtin_mul_overflow(last, element, &bytes)) return std::nullopt;
  return empty ? 0 : static_cast<size_t>(bytes);
}

std::optional<Entry> read_entry(const json& node, const TensorTransfer& transfer) {
  Entry entry;
  const auto type = parse_element_type(node.at("dtype").get<std::string>());
  if (!type || !are_integers(node.at("shape")) || !are_integers(node.at("strides"))) return std::nullopt;
  entry.type = *type;
  node.at("shape").get_to(entry.shape);
  node.at("strides").get_to(entry.strides);
  node.at("offset").get_to(entry.offset);
  entry.on_gpu = node.value("on_gpu", false);
  if (entry.shape.size() != entry.strides.size() || entry.shape.size() > kMaxRank || entry.offset % kAlignment != 0)
    return std::nullopt;
  // The strides of a candidate's tensor are there to be judged: its elements came one after the other.
  if (transfer.direction == Direction::from_candidate) {
    entry.strides.assign(entry.shape.size(), 0);
    if (std::any_of(entry.shape.begin(), entry.shape.end(), [](int64_t extent) { return extent < 0; }))
      return std::nullopt;
    if (!spanned_bytes(entry)) {
      entry.bytes = static_cast<size_t>(INT64_MAX);  // which no file has
      return entry;
    }
    entry.strides = row_major(entry.shape);
  }
  const auto bytes = spanned_bytes(entry);
  if (!bytes) return std::nullopt;
  entry.bytes = *bytes;
  return entry;
}

std::optional<at::Tensor> unpack_one(const Entry& entry, const Region& from, const TensorTransfer& transfer) {
  if (entry.bytes == 0)
    return at::empty_strided(entry.shape, entry.strides,
                             at::TensorOptions(entry.type).device(entry.on_gpu ? transfer.device : c10::kCPU));
  if (entry.offset > from.size || entry.bytes > from.size - entry.offset) return std::nullopt;
  const at::Tensor tensor = from.tensor(entry.offset, entry.shape, entry.strides, entry.type);
  // The sender still maps it.
  return entry.on_gpu && transfer.direction == Direction::from_candidate ? tensor.clone() : tensor;
}

// Maps what entries need of the file that travels first. Errors: it could still change.
Result<Region> open_file(const std::vector<Entry>& entries, const std::vector<Descriptor>& files) {
  struct stat info {};
  const int number = files.empty() ? -1 : files[0].number();
  const int seals = fcntl(number, F_GET_SEALS);  // -1: not a memory file
  if (seals < 0 || (seals & kSeals) != kSeals || fstat(number, &info) != 0) return not_whole();
  auto size = static_cast<size_t>(info.st_size), needed = size_t{0};
  for (const Entry& entry : entries) {
    size_t end = 0;
    if (entry.on_gpu || entry.bytes == 0) continue;
    if (__builtin_add_overflow(entry.offset, entry.bytes, &end) || end > size) return not_whole();
    needed = std::max(needed, end);
  }
  size = needed;
  auto region = map_file(number, size, MAP_PRIVATE);
  if (!region) return no_memory(size);
  return *std::move(region);
}

// And the GPU's memory that travels second, if any tensor lies there.
Result<Region> open_gpu_memory(const std::vector<Entry>& entries, const std::vector<Descriptor>& files,
                               const TensorTransfer& transfer) {
  size_t size = 0;
  for (const Entry& entry : entries) {
    if (!entry.on_gpu || entry.bytes == 0) continue;
    if (entry.offset > static_cast<size_t>(INT64_MAX) / 4 || entry.bytes > static_cast<size_t>(INT64_MAX) / 4)
      return not_whole();
    size = std::max(size, entry.offset + entry.bytes);
  }
  if (size == 0) return Region{};
  if (!transfer.gpu || files.size() < 2) return not_whole();
  return region_of(std::make_shared<const SharedMemory>(
                       TRY(SharedMemory::open(transfer.gpu, files[1].number(), static_cast<int64_t>(size)))),
                   transfer.device);
}

}  // namespace

std::vector<int> PackedTensors::descriptors() const {
  std::vector<int> numbers = {file.number()};
  if (on_gpu) numbers.push_back(on_gpu->descriptor());
  return numbers;
}

Result<PackedTensors> pack_tensors(const std::vector<at::Tensor>& tensors, const TensorTransfer& transfer) {
  PackedTensors packed{json::array(), Descriptor(), nullptr};
  size_t sizes[2] = {0, 0};  // in the host's memory, on the GPU
  int64_t all = 0;
  for (auto& tensor : tensors) all = sum_of(all, bytes_of_elements(tensor));
  const bool stay = is_too_much(all, transfer);
  for (auto& tensor : tensors) {
    const bool on_gpu = stays_on_gpu(tensor, transfer);
    packed.description.push_back({{"dtype", element_type_name(tensor.scalar_type())},
                                  {"shape", tensor.sizes().vec()},
                                  {"strides", tensor.strides().vec()},
                                  {"offset", sizes[on_gpu]},
                                  {"on_gpu", on_gpu}});
    if (stay) continue;
    // An expanded tensor has more elements than any memory.
    size_t bytes = static_cast<size_t>(content_of(tensor, transfer).numel()), end = 0;
    if (__builtin_mul_overflow(bytes, tensor.element_size(), &bytes) ||
        __builtin_add_overflow(bytes, sizes[on_gpu] + kAlignment, &end))
      return no_memory(SIZE_MAX);
    sizes[on_gpu] = aligned(sizes[on_gpu] + bytes);
  }
  packed.file = Descriptor(memfd_create("tilepilot-tensors", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  const int file = packed.file.number();
  if (file < 0 || ftruncate(file, static_cast<off_t>(sizes[0])) != 0) return no_memory(sizes[0]);
  {
    const auto region = map_file(file, sizes[0], MAP_SHARED);
    if (!region) return no_memory(sizes[0]);
    if (!stay) write_tensors(tensors, packed.description, transfer, *region, false);
  }
  if (fcntl(file, F_ADD_SEALS, kSeals | F_SEAL_SEAL) != 0) return no_memory(sizes[0]);
  if (sizes[1] > 0) {
    packed.on_gpu = std::make_shared<const SharedMemory>(TRY(create_shared(transfer, static_cast<int64_t>(sizes[1]))));
    write_tensors(tensors, packed.description, transfer, region_of(packed.on_gpu, transfer.device), true);
  }
  return packed;
}

Result<std::vector<at::Tensor>> unpack_tensors(const json& description, const std::vector<Descriptor>& files,
                                               const TensorTransfer& transfer) {
  std::vector<at::Tensor> tensors;
  try {
    std::vector<Entry> entries;
    for (auto& node : description) {
      auto entry = read_entry(node, transfer);
      if (!entry) return not_whole();
      entries.push_back(*std::move(entry));
    }
    int64_t all = 0;
    for (const Entry& entry : entries) all = sum_of(all, static_cast<int64_t>(entry.bytes));
    if (is_too_much(all, transfer)) return too_much(all, transfer);
    const Region file = TRY(open_file(entries, files)), on_gpu = TRY(open_gpu_memory(entries, files, transfer));
    for (const Entry& entry : entries) {
      auto tensor = unpack_one(entry, entry.on_gpu ? on_gpu : file, transfer);
      if (!tensor) return not_whole();
      tensors.push_back(*std::move(tensor));
    }
  } catch (const c10::OutOfMemoryError& error) {
    return make_error(DiagnosticKind::out_of_memory, {}, error.what_without_backtrace());
  } catch (const std::exception&) { return not_whole(); }  // of JSON of another shape, or of LibTorch
  return tensors;
}

}  // namespace tilepilot::eval
