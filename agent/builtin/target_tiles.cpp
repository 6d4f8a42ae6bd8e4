#include "agent/builtin/target_tiles.h"

namespace tilepilot::agent::builtin {

TargetTiles tiles_for(std::string_view target) {
  TargetTiles chosen;
  if (target.substr(0, 5) != "cuda:" && target.substr(0, 8) != "emulate:") return chosen;
  // 16 elements a thread leave registers for several tiles of a fused kernel; two blocks for each of some 132
  // multiprocessors.
  chosen.tiles = {.elements = 4096,
                  .longest_row = 16384,
                  .longest_line = 4096,
                  .enough_blocks = 264,
                  .fewest_elements = 1024,
                  .thread_elements = 16,
                  .last_axis = 0};
  // Two stages of both operands take 64 KiB of shared memory.
  chosen.products = {.rows = 128, .columns = 128, .depth = 32, .depth_16_bit = 64, .elements = 16384, .threads = 256};
  return chosen;
}

}  // namespace tilepilot::agent::builtin
