// Where buffers lie: bytes, a shape and strides, and for memory that starts out without contents which bytes have been
// written. Scopes nest: a program's parameters, a block's tiles, a thread's own buffers.
#pragma once

#include <optional>
#include <unordered_map>
#include <vector>

#include "compiler/interpret/element.h"

namespace tilepilot::interpret {

using Indices = std::vector<int64_t>;

// Bytes that somebody has to write before they are read.
struct Storage {
  std::vector<std::byte> bytes;
  std::vector<uint8_t> written;  // a byte for each byte: 1 for its lower half, 2 for its upper one
};

struct Memory {
  ir::DType type;
  Indices shape, strides;  // strides in elements
  std::byte* data = nullptr;
  uint8_t* written = nullptr;  // null: all of it
  bool is_global = false;

  // Bits from `data`; none outside.
  std::optional<int64_t> place(const Indices& at) const;
  bool is_written(int64_t place) const;
  Element read(int64_t place) const;
  void write(int64_t place, const Element& value) const;
};

int64_t count(const Indices& shape);
// Of so many elements one after the other.
size_t bytes_of(ir::DType type, int64_t elements);
Indices contiguous(const Indices& shape);
Storage storage_for(ir::DType type, const Indices& shape);
// The whole of a storage, by this type and shape.
Memory memory_in(Storage& storage, ir::DType type, Indices shape, bool is_global);

struct Scope {
  const Scope* outer = nullptr;
  std::unordered_map<const ir::VarData*, Element> vars = {};
  std::unordered_map<const ir::BufferData*, Memory> buffers = {};

  const Element* find(const ir::VarData* var) const;  // null if it is not bound
  const Memory& find(const ir::BufferData* buffer) const;
};

// Calls body(offsets) for all points of a box, last axis fastest.
template <class F>
void each(const Indices& extent, F body) {
  for (const int64_t size : extent) {
    if (size <= 0) return;
  }
  Indices at(extent.size(), 0);
  for (;;) {
    body(at);
    size_t axis = extent.size();
    while (axis > 0 && ++at[axis - 1] == extent[axis - 1]) at[--axis] = 0;
    if (axis == 0) return;
  }
}

}  // namespace tilepilot::interpret
