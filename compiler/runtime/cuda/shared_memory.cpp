#include "compiler/runtime/cuda/shared_memory.h"

#include <unistd.h>

#include <algorithm>
#include <utility>

#include "compiler/runtime/cuda/driver_functions.h"

namespace tilepilot::runtime::cuda {
namespace {

constexpr int kFileDescriptors = 1;  // CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR

AllocationProperties properties_of(int device_number) {
  AllocationProperties properties;
  properties.handle_types = kFileDescriptors;
  properties.location.number = device_number;
  return properties;
}

}  // namespace

SharedMemory& SharedMemory::operator=(SharedMemory&& other) noexcept {
  if (this == &other) return *this;
  unmap();
  device_ = std::move(other.device_);
  handle_ = std::exchange(other.handle_, 0);
  address_ = std::exchange(other.address_, 0);
  size_ = std::exchange(other.size_, 0);
  descriptor_ = std::exchange(other.descriptor_, -1);
  reserved_ = std::exchange(other.reserved_, false);
  mapped_ = std::exchange(other.mapped_, false);
  return *this;
}

void SharedMemory::unmap() {
  if (!device_ || !device_->use().ok()) return;
  const DriverFunctions& call = *device_->driver_;
  if (mapped_) call.unmap(address_, static_cast<size_t>(size_));
  if (reserved_) call.free_addresses(address_, static_cast<size_t>(size_));
  if (handle_ != 0) call.release_allocation(handle_);
  if (descriptor_ >= 0) ::close(descriptor_);
  mapped_ = reserved_ = false;
  handle_ = 0;
  descriptor_ = -1;
}

Status SharedMemory::map(int64_t bytes) {
  const DriverFunctions& call = *device_->driver_;
  size_ = bytes;
  const auto size = static_cast<size_t>(bytes);
  TRY(call.check("cuMemAddressReserve", call.reserve_addresses(&address_, size, 0, 0, 0)));
  reserved_ = true;
  TRY(call.check("cuMemMap", call.map(address_, size, 0, handle_, 0)));
  mapped_ = true;
  const MemoryAccess access{{MemoryLocation::device, device_->number_}, MemoryAccess::read_and_write};
  return call.check("cuMemSetAccess", call.set_access(address_, size, &access, 1));
}

Result<SharedMemory> SharedMemory::create(std::shared_ptr<const Device> device, int64_t bytes) {
  TRY(device->use());
  SharedMemory memory(std::move(device));
  const DriverFunctions& call = *memory.device_->driver_;
  const AllocationProperties properties = properties_of(memory.device_->number_);
  size_t unit = 0;
  TRY(call.check("cuMemGetAllocationGranularity", call.granularity(&unit, &properties, 0)));
  unit = std::max<size_t>(unit, 1);
  const size_t size = (static_cast<size_t>(std::max<int64_t>(bytes, 1)) + unit - 1) / unit * unit;
  TRY(call.check("cuMemCreate", call.create_allocation(&memory.handle_, size, &properties, 0)));
  TRY(call.check("cuMemExportToShareableHandle",
                 call.export_allocation(&memory.descriptor_, memory.handle_, kFileDescriptors, 0)));
  TRY(memory.map(static_cast<int64_t>(size)));
  return memory;
}

Result<SharedMemory> SharedMemory::open(std::shared_ptr<const Device> device, int descriptor, int64_t bytes) {
  TRY(device->use());
  SharedMemory memory(std::move(device));
  const DriverFunctions& call = *memory.device_->driver_;
  const AllocationProperties properties = properties_of(memory.device_->number_);
  size_t unit = 0;
  TRY(call.check("cuMemGetAllocationGranularity", call.granularity(&unit, &properties, 0)));
  unit = std::max<size_t>(unit, 1);
  void* number = reinterpret_cast<void*>(static_cast<intptr_t>(descriptor));
  TRY(call.check("cuMemImportFromShareableHandle", call.import_allocation(&memory.handle_, number, kFileDescriptors)));
  const size_t size = (static_cast<size_t>(std::max<int64_t>(bytes, 1)) + unit - 1) / unit * unit;
  TRY(memory.map(static_cast<int64_t>(size)));
  return memory;
}

}  // namespace tilepilot::runtime::cuda
