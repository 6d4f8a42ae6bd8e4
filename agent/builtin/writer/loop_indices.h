// The index expressions of a kernel's loops: block variables, tile variables, serial variables.
#pragma once

#include <string>
#include <vector>

#include "agent/builtin/writer/tensor_access.h"

namespace tilepilot::agent::builtin {

struct SerialLoop {
  int loop = 0;
  std::string variable;
  std::string count;  // "K" or "T.ceildiv(N, block_N)"
};

class LoopIndices {
 public:
  explicit LoopIndices(const TilePlan& tiles);

  std::string launch() const;  // "T.Kernel(T.ceildiv(M, block_M), B, threads=128) as (bx, by)"
  const std::vector<SerialLoop>& serial() const { return serial_; }
  // The whole index along a loop, or only its part outside the tile ("0" if there is none).
  std::string index(int loop) const;
  std::string index_at(int loop, const std::string& step) const;  // of a step of a serial loop: "(steps - 1) * ..."
  std::string start(int loop) const;
  std::string element(const std::string& tensor, const TensorAccess& access, const std::string& last = "") const;
  std::string tile_start(const std::string& tensor, const TensorAccess& access) const;
  // True if the tile's axes are the access's last ones, in order, so that `T.copy` moves it as a box.
  bool is_box(const TensorAccess& access) const;

  std::string part() const { return part_; }  // block variable of those that share a reduction: "by"
  std::string block_size(int loop) const;     // "block_M", or "N" if the tile holds the loop whole
  std::string tile_shape() const;             // "block_M, N"
  std::string tile_variables() const;         // "i, j"
  std::string statistic_size() const;         // extent of a per-row value: "block_M", "1"
  std::string statistic_index() const;        // "i", "0"
  // A value per row as all blocks see it, of each part: its shape and an element's indices after the part.
  std::string statistic_shape() const;  // "M, B"; "" if there is one value in all
  std::string statistic_place() const;  // "bx * block_M + i, by"

 private:
  const TilePlan& tiles_;
  std::vector<std::string> block_variable_;   // loop -> "bx", ""
  std::vector<std::string> serial_variable_;  // loop -> "k", ""
  std::vector<std::string> grid_extents_;
  std::vector<SerialLoop> serial_;
  std::string part_;

  std::string tile_variable(int loop) const;
  void name_grid();
  void name_serial();
};

}  // namespace tilepilot::agent::builtin
