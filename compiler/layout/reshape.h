// New fragments from old: axes removed, added and exchanged, tiles repeated over registers, threads and replicas. Each
// sends indices of the old cover to indices of a new one and is a composition of layouts, so it fails, and says why,
// where threads or registers run across the ends of an axis that changes.
#pragma once

#include "compiler/layout/fragment.h"

namespace tilepilot::layout {

// What remains when all elements along an axis have been combined, and each thread that had a part knows the result.
// This is also how a loop over the whole tile reads or writes a tile without that axis.
// @post over the whole cover, t holds element e of the result if and only if it held an element of the line through e
// @post register_count() shrinks by the registers that lay along the axis; threads that did become replicas
std::optional<Fragment> reduced(const Fragment& fragment, size_t axis, std::string* why = nullptr);

struct NewAxis {
  size_t at = 0;  // where it stands in the new shape
  int64_t extent = 1;
  int64_t together = 0;  // neighbours along it that a thread holds in its first registers; 0: all that it holds
};
// The opposite: replicas share the elements along the new axis out among themselves, evenly if that gives each as few
// as it can, else with places beyond the end, in the cover. What each of them holds comes first of all registers.
// @post over the whole cover, equal_functions(reduced(result, axis.at), fragment)
std::optional<Fragment> expanded(const Fragment& fragment, NewAxis axis, std::string* why = nullptr);

// Axis i of the result is axis order[i].
// @post coordinates of each place, read in that order, are those of the fragment
std::optional<Fragment> permuted(const Fragment& fragment, const std::vector<size_t>& order,
                                 std::string* why = nullptr);

struct Leading {
  size_t axis = 0;
  int64_t extent = 1;
};
// The first elements along an axis, held where the fragment holds them; of the registers those that lie beyond are
// left out. Fails where threads lie beyond, or some modes go beyond that do not end there.
// @pre the cover is as long as the shape along the axis
// @post every place of the result holds an element of the fragment's same thread, at the same coordinates
std::optional<Fragment> leading(const Fragment& fragment, Leading part, std::string* why = nullptr);

enum class Across { registers, threads };
struct Repeat {
  size_t axis = 0;
  int64_t count = 1;
  Across across = Across::registers;
};
// The tile `count` times along an axis, copies held by further registers of the same threads, or by further threads:
// copy c by registers from c * register_count() on, or by threads from c * thread_count() on.
// @pre the cover is as long as the shape along the axis
// @post shape()[axis] is `count` times as long; copy c is the fragment, moved by c * fragment.shape()[axis]
std::optional<Fragment> repeated(const Fragment& fragment, Repeat repeat, std::string* why = nullptr);

// `count` times as many threads, which hold the same again.
// @post element({t + c * fragment.thread_count(), r}) == fragment.element({t, r})
Fragment replicated(const Fragment& fragment, int64_t count);

}  // namespace tilepilot::layout
