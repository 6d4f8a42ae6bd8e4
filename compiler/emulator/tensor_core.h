// mma, over the registers of a warp's lanes.
#pragma once

#include <span>

#include "compiler/emulator/prelude/interface.h.in"

namespace tilepilot::emulator {

// c += a * b for the shape and types in `detail` (interface.h.in). Registers lie as PTX numbers them.
// @pre 32 lanes
void multiply(uint32_t detail, std::span<void* const> lanes);

// Elements as instructions see them; float32 operands are tfloat32: their last bits do not count.
int bytes_of(emulated::operand type);
double operand_value(emulated::operand type, const void* values, int index);
double sum_value(emulated::operand type, const void* values, int index);
// Rounded once.
void put_sum(emulated::operand type, void* values, int index, double x);

}  // namespace tilepilot::emulator
