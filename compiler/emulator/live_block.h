// A block of a launch with all that belongs to it, while it runs.
#pragma once

#include "compiler/emulator/machine.h"
#include "compiler/emulator/order/launch_order.h"

namespace tilepilot::emulator {

inline int64_t volume(const std::array<int64_t, 3>& extents) { return extents[0] * extents[1] * extents[2]; }

struct Machine::ClockGroup {
  Clocks clocks;
  FenceLog fences;  // for what works beside the threads
  HappensBefore order;

  ClockGroup(LaunchOrder& launch, int64_t threads, bool together)
      : clocks(threads, launch.epochs),
        fences(clocks, static_cast<size_t>(threads)),
        order(launch, clocks, static_cast<size_t>(threads), together) {}
  void start(std::array<int64_t, 3> place) {
    order.start(place);
    fences.clear();
  }
  // Epochs from `first` on are its own.
  Viewpoint view(uint32_t first) { return {&clocks, &fences, &order, first}; }
};

struct Machine::LiveBlock {
  ClockGroup& clock_group;
  Memories memories;
  Block block;
  AsyncProxy async_proxy;
  ClusterBarrier own_barrier;
  ClusterBarrier* cluster = &own_barrier;  // that of its first block
  std::array<int64_t, 3> place{};
  Block::Outcome outcome = Block::Outcome::ended;
  int64_t rank;

  LiveBlock(Machine& machine, ClockGroup& members, BlockPlace in_cluster, const Options& options)
      : clock_group(members),
        memories(machine.launch_, in_cluster.rank * emulator::volume(machine.launch_.threads),
                 {machine.global_, machine.order_, clock_group.clocks, clock_group.fences, clock_group.order}, options,
                 machine.reporter_),
        block(machine.launch_, in_cluster, machine.state_, clock_group.clocks, machine.reporter_),
        async_proxy(memories, clock_group.clocks, clock_group.fences, machine.reporter_, block),
        own_barrier(in_cluster.blocks * block.size(), clock_group.clocks, machine.reporter_),
        rank(in_cluster.rank) {}
};

}  // namespace tilepilot::emulator
