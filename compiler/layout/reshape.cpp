#include "compiler/layout/reshape.h"

#include <algorithm>
#include <cassert>
#include <numeric>

#include "compiler/layout/algebra.h"

namespace tilepilot::layout {
namespace {

// Both layouts of a fragment.
struct Holders {
  Layout threads, registers;
};

// The fragment's layouts when axis i of its cover has stride strides[i] in the new one.
std::optional<Holders> with_strides(const Fragment& fragment, const std::vector<int64_t>& strides, std::string* why) {
  auto parts = compose(axes_layout(fragment.cover(), strides), {fragment.threads(), fragment.registers()}, why);
  if (!parts) return std::nullopt;
  return Holders{std::move((*parts)[0]), std::move((*parts)[1])};
}

template <class T>
std::vector<T> without(std::vector<T> values, size_t at) {
  values.erase(values.begin() + ptrdiff_t(at));
  return values;
}

template <class T>
std::vector<T> with(std::vector<T> values, size_t at, T value) {
  values.insert(values.begin() + ptrdiff_t(at), value);
  return values;
}

Layout with_mode(const Layout& layout, Mode mode) { return concatenated(layout, Layout{mode}); }

int64_t parts_of(int64_t count, int64_t most) { return (count + most - 1) / most; }

// How many of each mode of stride 0, and of replicas in all, share out a number of things.
struct Sharers {
  std::vector<int64_t> of_mode;
  int64_t count = 1;
};
Sharers sharers_of(const Layout& threads, int64_t things, bool evenly) {
  Sharers sharers;
  for (const Mode& mode : threads.modes()) {
    if (mode.stride != 0) continue;
    const int64_t left = parts_of(things, sharers.count);
    int64_t taken = std::gcd(mode.extent, left);
    if (!evenly)
      for (taken = std::min(left, mode.extent); mode.extent % taken != 0;) ++taken;
    sharers.of_mode.push_back(taken);
    sharers.count *= taken;
  }
  return sharers;
}

// Modes of stride 0 take on steps of `stride`, as far as they share.
Layout share_out(const Layout& threads, const Sharers& sharers, int64_t stride) {
  Layout shared;
  auto next = sharers.of_mode.begin();
  for (const Mode& mode : threads.modes()) {
    const int64_t taken = mode.stride == 0 ? *next++ : 1;
    if (taken > 1) shared = with_mode(shared, {taken, stride});
    stride *= taken;
    if (mode.extent > taken) shared = with_mode(shared, {mode.extent / taken, mode.stride});
  }
  return shared;
}

// With modes that each stay within lines of so many elements, or step over whole ones.
std::optional<Layout> apart(const Layout& layout, int64_t line) {
  std::vector<Mode> modes;
  for (const Mode& mode : layout.modes()) {
    const bool within = mode.stride * (mode.extent - 1) < line, over = mode.stride % line == 0;
    if (within || over) {
      modes.push_back(mode);
      continue;
    }
    const int64_t steps = line / mode.stride;
    if (line % mode.stride != 0 || mode.extent % steps != 0) return std::nullopt;
    modes.push_back({steps, mode.stride});
    modes.push_back({mode.extent / steps, line});
  }
  return Layout(std::move(modes));
}

}  // namespace

std::optional<Fragment> reduced(const Fragment& fragment, size_t axis, std::string* why) {
  const Shape cover = without(fragment.cover(), axis);
  auto holders = with_strides(fragment, with(row_major_strides(cover), axis, int64_t{0}), why);
  if (!holders) return std::nullopt;
  std::vector<Mode> registers;
  for (const Mode& mode : holders->registers.modes()) {
    if (mode.stride != 0) registers.push_back(mode);
  }
  return Fragment(without(fragment.shape(), axis), std::move(holders->threads), Layout(std::move(registers)), cover);
}

std::optional<Fragment> expanded(const Fragment& fragment, NewAxis axis, std::string* why) {
  const auto strides_for = [&](int64_t extent) { return row_major_strides(with(fragment.cover(), axis.at, extent)); };
  const auto moved = [&](int64_t extent) { return with_strides(fragment, without(strides_for(extent), axis.at), why); };
  const auto exact = moved(axis.extent);
  if (!exact) return std::nullopt;
  const int64_t things = axis.together == 0 ? axis.extent : parts_of(axis.extent, axis.together);
  Sharers sharers = sharers_of(exact->threads, things, true);
  const Sharers uneven = sharers_of(exact->threads, things, false);
  const auto rounds_of = [&](const Sharers& of) { return parts_of(things, of.count); };
  if (rounds_of(uneven) < rounds_of(sharers)) sharers = uneven;
  const int64_t together = axis.together == 0 ? rounds_of(sharers) : axis.together;
  const int64_t turn = together * sharers.count, turns = axis.together == 0 ? 1 : rounds_of(sharers);

  const auto holders = moved(turn * turns);
  if (!holders) return std::nullopt;
  const int64_t stride = strides_for(turn * turns)[axis.at];
  Layout registers{{together, stride}};
  if (turns > 1) registers = with_mode(registers, {turns, turn * stride});
  return Fragment(with(fragment.shape(), axis.at, axis.extent), share_out(holders->threads, sharers, together * stride),
                  concatenated(registers, holders->registers), with(fragment.cover(), axis.at, turn * turns));
}

std::optional<Fragment> permuted(const Fragment& fragment, const std::vector<size_t>& order, std::string* why) {
  Shape shape, cover;
  for (size_t axis : order) {
    shape.push_back(fragment.shape()[axis]);
    cover.push_back(fragment.cover()[axis]);
  }
  assert(cover.size() == fragment.cover().size());
  const std::vector<int64_t> new_strides = row_major_strides(cover);
  std::vector<int64_t> strides(order.size(), 0);
  for (size_t i = 0; i < order.size(); ++i) strides[order[i]] = new_strides[i];
  auto holders = with_strides(fragment, strides, why);
  if (!holders) return std::nullopt;
  return Fragment(shape, std::move(holders->threads), std::move(holders->registers), cover);
}

std::optional<Fragment> leading(const Fragment& fragment, Leading part, std::string* why) {
  // With the axis outermost, whatever lies along it has strides beyond all others.
  std::vector<size_t> order{part.axis}, back;
  for (size_t axis = 0; axis < fragment.shape().size(); ++axis)
    if (axis != part.axis) order.push_back(axis);
  for (size_t axis = 0; axis < order.size(); ++axis)
    back.push_back(static_cast<size_t>(std::find(order.begin(), order.end(), axis) - order.begin()));
  const auto first = permuted(fragment, order, why);
  if (!first) return std::nullopt;
  Shape shape = first->shape();
  const int64_t line = volume(shape) / shape[0];
  const auto held = apart(first->registers(), line), threads = apart(first->threads(), line);
  int64_t last = 0;  // along the axis
  std::vector<Mode> registers;
  for (Mode mode : held ? held->modes() : std::vector<Mode>{}) {
    const int64_t step = mode.stride / line;
    if (step >= part.extent) continue;
    if (step > 0) mode.extent = std::min(mode.extent, part.extent / step);
    last += step * (mode.extent - 1);
    registers.push_back(mode);
  }
  for (const Mode& mode : threads ? threads->modes() : std::vector<Mode>{})
    last += mode.stride / line * (mode.extent - 1);
  if (!held || !threads || last >= part.extent || first->cover() != shape) {
    if (why != nullptr) *why = "threads lie beyond the part, or modes do not end with it";
    return std::nullopt;
  }
  shape[0] = part.extent;
  return permuted(Fragment(shape, *threads, Layout(std::move(registers))), back, why);
}

std::optional<Fragment> repeated(const Fragment& fragment, Repeat repeat, std::string* why) {
  Shape shape = fragment.shape(), cover = fragment.cover();
  assert(shape[repeat.axis] == cover[repeat.axis]);
  shape[repeat.axis] *= repeat.count;
  cover[repeat.axis] *= repeat.count;
  const std::vector<int64_t> strides = row_major_strides(cover);
  auto holders = with_strides(fragment, strides, why);
  if (!holders) return std::nullopt;
  Layout& grows = repeat.across == Across::threads ? holders->threads : holders->registers;
  grows = with_mode(grows, {repeat.count, strides[repeat.axis] * fragment.shape()[repeat.axis]});
  return Fragment(shape, std::move(holders->threads), std::move(holders->registers), cover);
}

Fragment replicated(const Fragment& fragment, int64_t count) {
  return Fragment(fragment.shape(), with_mode(fragment.threads(), {count, 0}), fragment.registers(), fragment.cover());
}

}  // namespace tilepilot::layout
