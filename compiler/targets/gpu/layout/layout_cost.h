// What layouts cost, where free choices are weighed against each other, and the ways of a tile from one layout to
// another. A cost is counted for all warps of a block, once through each statement concerned, and weighed in issue
// slots of a multiprocessor. Numbers of loops come from a sample, the first warp with its first registers, since
// layouts are regular: they rank layouts of the same statements, and say nothing about how long a kernel takes.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "compiler/passes/algebra/static_index.h"
#include "compiler/targets/c/integer_facts.h"
#include "compiler/targets/gpu/facts/loop_uses.h"
#include "compiler/targets/gpu/layout/infer.h"

namespace tilepilot::targets::gpu {

struct LayoutCost {
  int64_t accesses = 0;    // instructions of warps that load or store
  int64_t sectors = 0;     // of 32 bytes of global memory, by access
  int64_t wavefronts = 0;  // of shared memory
  int64_t shuffles = 0;    // of warps, of 32 bits each
  int64_t barriers = 0;    // of the block, for values that cross warps
  int64_t steps = 0;       // what warps do with registers, whoever of their threads has work or does what others do
  int64_t spills = 0;      // registers of warps beyond what threads have

  LayoutCost& operator+=(const LayoutCost& other);
  LayoutCost operator*(int64_t times) const;
  int64_t total() const;
};
// Whether a cost is less by more than such a model may err.
bool is_clearly_less(const LayoutCost& cost, const LayoutCost& than);
// "cost 768 (64 accesses, 128 sectors)", without what is 0.
std::string to_text(const LayoutCost& cost);

// What a loop does to shared or global memory in one place.
struct MemoryAccess {
  ir::Buffer buffer;
  bool by_one = false;                       // one of the threads that do the same does it
  std::vector<passes::StaticIndex> indices;  // of the loop's variables, and others that count as 0
  size_t variables = 0;                      // all of these
  std::vector<int64_t> vectors;  // along each axis of the loop, how many neighbours one access can move; 1: none
  // Of what so many neighbours along an axis load around each other: `loads` of `elements`, the first of which begins
  // `first` elements behind what the first neighbour wants. No loads: those of another access serve this one, too.
  struct Window {
    int64_t first = 0, elements = 1, loads = 0;
  };
  std::map<std::pair<size_t, int64_t>, Window> windows;  // by axis and number of neighbours
  std::vector<int64_t> alike;  // along each axis, of how many neighbours all are accessed or none; 1: nothing is known
  std::vector<int64_t> distances;              // how far neighbours along each of them are apart in memory, in elements
  std::vector<int64_t> steps;                  // the same along the axes of the buffer
  const layout::SharedLayout* tile = nullptr;  // of shared buffers, instead
};
// Those whose places are known while the compiler runs, or found where a tensor says: rows that are gathered.
std::vector<MemoryAccess> memory_accesses(const ParallelLoop& loop, const c::IntegerFacts& facts,
                                          const decltype(Inference::tiles)& tiles, bool adds_vectors);

// Of a loop that is dealt out so.
LayoutCost loop_cost(const ParallelLoop& loop, const std::vector<MemoryAccess>& accesses, const layout::Fragment& at);
// That no layout can undercut.
LayoutCost least_cost(const ParallelLoop& loop, const std::vector<MemoryAccess>& accesses, int64_t threads);
// Of a reduction along an axis of a fragment whose result has so many registers a thread.
LayoutCost reduction_cost(const layout::Fragment& source, size_t axis, int64_t results);
// Of sending a tile through shared memory to other threads: element by element where nothing is known but how many
// there are, else in what each side can move at once, to and from a tile in which nobody waits for others' banks.
LayoutCost exchange_cost(int64_t elements, int64_t threads);
LayoutCost exchange_cost(const layout::Fragment& from, const layout::Fragment& to, int64_t element_bits);
// Of handing it over from lane to lane instead.
LayoutCost shuffle_cost(const layout::WarpMoves& moves, int64_t element_bits, int64_t threads);
// Of fragments that need so many words a thread.
LayoutCost register_cost(int64_t words, int64_t threads);

}  // namespace tilepilot::targets::gpu
