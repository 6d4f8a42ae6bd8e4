#include "compiler/interpret/memory.h"

#include <algorithm>

namespace tilepilot::interpret {

std::optional<int64_t> Memory::place(const Indices& at) const {
  int64_t offset = 0;
  for (size_t axis = 0; axis < at.size(); ++axis) {
    if (at[axis] < 0 || at[axis] >= shape[axis]) return std::nullopt;
    offset += at[axis] * strides[axis];
  }
  return offset * type.bytes();
}

bool Memory::is_written(int64_t place) const {
  return written == nullptr ||
         std::all_of(written + place, written + place + type.bytes(), [](uint8_t w) { return w; });
}

void Memory::write(int64_t place, const Element& value) const {
  value.store(data + place);
  if (written != nullptr) std::fill_n(written + place, type.bytes(), uint8_t{1});
}

int64_t count(const Indices& shape) {
  int64_t result = 1;
  for (const int64_t extent : shape) result *= std::max<int64_t>(extent, 0);
  return result;
}

Indices contiguous(const Indices& shape) {
  Indices strides(shape.size(), 1);
  for (size_t axis = shape.size(); axis-- > 1;) strides[axis - 1] = strides[axis] * shape[axis];
  return strides;
}

Storage storage_for(ir::DType type, const Indices& shape) {
  const auto bytes = static_cast<size_t>(count(shape) * type.bytes());
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
  while (scope->outer != nullptr && scope->buffers.count(buffer) == 0) scope = scope->outer;
  return scope->buffers.at(buffer);
}

}  // namespace tilepilot::interpret
