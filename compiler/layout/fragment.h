// Fragments: tiles that live in the registers of threads. A fragment says which element of the tile each register of
// each thread holds; the same value describes how the iterations of a parallel loop are dealt out to threads.
//
// Definition. A fragment is a tile shape, a cover (the shape, or a larger one, axis by axis) and two layouts. Register
// r of thread t stands at row-major index threads(t) + registers(r) of the cover; it holds the tile's element with the
// same coordinates, or none if they lie outside the tile. Threads that a mode of stride 0 tells apart hold the same
// elements: they are replicas.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "compiler/layout/shape.h"

namespace tilepilot::layout {

// Threads whose numbers differ only in the remainder are one warp: they exchange registers by shuffles.
constexpr int64_t kWarpSize = 32;
// Four warps, the first of which is a multiple of four, issue a wgmma together.
constexpr int64_t kWarpgroupSize = 128;

// A register of a thread.
struct Place {
  int64_t thread = -1;
  int64_t reg = -1;

  friend bool operator==(const Place&, const Place&) = default;
};

class Fragment {
 public:
  // The cover is `shape` unless one is given. @pre it is nowhere smaller than the shape and holds all threads and
  // registers reach
  Fragment(Shape shape, Layout threads, Layout registers, Shape cover = {});

  const Shape& shape() const { return shape_; }
  const Shape& cover() const { return cover_; }
  const Layout& threads() const { return threads_; }
  const Layout& registers() const { return registers_; }
  int64_t thread_count() const { return threads_.size(); }
  // Of one thread, in elements.
  int64_t register_count() const { return registers_.size(); }
  // How many threads hold what one thread holds.
  int64_t replicas() const;

  // The row-major index, in the tile, of the element in that place, if it holds one.
  std::optional<int64_t> element(Place place) const;
  // All places that hold the element, by register, then by thread.
  // @post a place is one of them if and only if element(place) is the element
  std::vector<Place> owners(int64_t element) const;

  // Every element has an owner.
  bool is_complete() const;
  // Some place holds no element: what the threads do needs a predicate.
  bool needs_guard() const;

 private:
  Shape shape_, cover_;
  Layout threads_, registers_;
};

// The same element in every place, whatever modes say it.
bool equal_functions(const Fragment& a, const Fragment& b);
// Each thread holds the same elements in both, maybe in other registers.
bool same_ownership(const Fragment& a, const Fragment& b);

}  // namespace tilepilot::layout
