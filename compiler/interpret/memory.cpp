#include "compiler/interpret/memory.h"

#include <algorithm>

namespace tilepilot::interpret {
namespace {

constexpr uint8_t kWhole = 3;
uint8_t half(int64_t place) { return place % 8 == 0 ? 1 : 2; }

}  // namespace

std::optional<int64_t> Memory::place(const Indices& at) const {
  int64_t offset = 0;
  for (size_t axis = 0; axis < at.size(); ++axis) {
    if (at[axis] < 0 || at[axis] >= shape[axis]) return std::nullopt;
    offset += at[axis] * strides[axis];
  }
  return offset * type.bits;
}

bool Memory::is_written(int64_t place) const {
  if (written == nullptr) return true;
  const uint8_t* first = written + place / 8;
  if (type.is_nibble()) return (*first & half(place)) != 0;
  return std::all_of(first, first + type.bytes(), [](uint8_t w) { return w == kWhole; });
}

Element Memory::read(int64_t place) const {
  const std::byte* first = data + place / 8;
  if (!type.is_nibble()) return Element::load(first, type);
  return Element::from_bits(std::to_integer<uint64_t>(*first >> (place % 8)) & 15, type);
}

void Memory::write(int64_t place, const Element& value) const {
  if (!type.is_nibble()) {
    value.store(data + place / 8);
    if (written != nullptr) std::fill_n(written + place / 8, type.bytes(), kWhole);
    return;
  }
  std::byte& shared = data[place / 8];
  const std::byte others = shared & (std::byte{0xf0} >> (place % 8));
  shared = others | (static_cast<std::byte>(value.to_bits() & 15) << (place % 8));
  if (written != nullptr) written[place / 8] = static_cast<uint8_t>(written[place / 8] | half(place));
}

int64_t count(const Indices& shape) {
  int64_t result = 1;
  for (const int64_t extent : shape) result *= std::max<int64_t>(extent, 0);
  return result;
}

size_t bytes_of(ir::DType type, int64_t elements) { return static_cast<size_t>((elements * type.bits + 7) / 8); }

Indices contiguous(const Indices& shape) {
  Indices strides(shape.size(), 1);
  for (size_t axis = shape.size(); axis-- > 1;) strides[axis - 1] = strides[axis] * shape[axis];
  return strides;
}

Storage storage_for(ir::DType type, const Indices& shape) {
  const size_t bytes = bytes_of(type, count(shape));
  return {std::vector<std::byte>(bytes), std::vector<uint8_t>(bytes)};
}

Memory memory_in(Storage& storage, ir::DType type, Indices shape, bool is_global) {
  Indices strides = contiguous(shape);
  return {type, std::move(shape), std::move(strides), storage.bytes.data(), storage.written.data(), is_global};
}

const Element* Scope::find(const ir::VarData* var) const {
  for (const Scope* scope = this; scope != nullptr; scope = scope->outer) {
    if (const auto found = scope->vars.find(var); found != scope->vars.end()) return &found->second;
  }
  return nullptr;
}

const Memory& Scope::find(const ir::BufferData* buffer) const {
  const Scope* scope = this;
  auto found = scope->buffers.find(buffer);
  while (found == scope->buffers.end()) {
    scope = scope->outer;
    found = scope->buffers.find(buffer);
  }
  return found->second;
}

}  // namespace tilepilot::interpret
