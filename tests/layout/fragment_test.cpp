// Fragments and what is made of them, compared place by place with their definitions.
#include "compiler/layout/fragment.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <numeric>
#include <set>

#include "compiler/layout/partition.h"
#include "compiler/layout/reshape.h"
#include "tests/layout/random_fragments.h"
#include "tests/rounds.h"

namespace tilepilot::layout {
namespace {

using testing::parsed;
using testing::RandomLayouts;

// Of all kinds: dealt out at random, in order, by rows; with replicas, with guards.
std::vector<Fragment> many_fragments() {
  std::vector<Fragment> fragments = {
      Fragment({}, Layout(), Layout()),
      Fragment({}, parsed("32:0"), Layout()),
      Fragment({16, 8}, parsed("(4,8):(2,8)"), parsed("(2,2):(1,64)")),
      Fragment({4, 6}, parsed("(8,4):(1,8)"), Layout(), {4, 8}),
  };
  RandomLayouts random(41);
  for (int round = 0; round < rounds(300); ++round) {
    const Fragment fragment = testing::random_fragment(random);
    const Workers workers{random.pick(1, 24), random.pick(1, 4)};
    fragments.push_back(partition(fragment.shape(), workers));
    fragments.push_back(partition_rows(fragment.shape(), workers));
    fragments.push_back(fragment);
  }
  return fragments;
}

template <class Visit>
void for_each_place(const Fragment& fragment, Visit visit) {
  for (int64_t thread = 0; thread < fragment.thread_count(); ++thread) {
    for (int64_t reg = 0; reg < fragment.register_count(); ++reg) visit(Place{thread, reg});
  }
}

// Coordinates in the cover, also of places that hold nothing.
Coordinates cover_coordinates(const Fragment& fragment, Place place) {
  return coordinates(fragment.cover(), fragment.threads()(place.thread) + fragment.registers()(place.reg));
}

TEST(Fragment, HoldsTheElementsOfTheTile) {
  for (const Fragment& fragment : many_fragments()) {
    std::vector<std::vector<Place>> owners(size_t(volume(fragment.shape())));
    bool guard = false;
    for_each_place(fragment, [&](Place place) {
      const Coordinates at = cover_coordinates(fragment, place);
      bool inside = true;
      for (size_t axis = 0; axis < at.size(); ++axis) inside = inside && at[axis] < fragment.shape()[axis];
      const auto element = fragment.element(place);
      ASSERT_EQ(element.has_value(), inside);
      if (!element) return void(guard = true);
      ASSERT_EQ(coordinates(fragment.shape(), *element), at);
      owners[size_t(*element)].push_back(place);
    });
    EXPECT_EQ(fragment.needs_guard(), guard);
    EXPECT_TRUE(fragment.is_complete());
    for (size_t element = 0; element < owners.size(); ++element) {
      std::sort(owners[element].begin(), owners[element].end(),
                [](Place a, Place b) { return std::pair(a.reg, a.thread) < std::pair(b.reg, b.thread); });
      ASSERT_EQ(fragment.owners(int64_t(element)), owners[element]);
      ASSERT_EQ(int64_t(owners[element].size()), fragment.replicas());
    }
  }
}

TEST(Fragment, MayLeaveElementsWithoutOwner) {
  EXPECT_FALSE(Fragment({4}, parsed("2:1"), Layout()).is_complete());
  EXPECT_TRUE(Fragment({4}, parsed("2:1"), Layout()).owners(3).empty());
}

TEST(Fragment, ComparesByWhatThreadsHold) {
  const Fragment in_order({8}, parsed("2:4"), parsed("4:1")), split({8}, parsed("2:4"), parsed("(2,2):(1,2)")),
      mixed({8}, parsed("2:4"), parsed("(2,2):(2,1)")), across({8}, parsed("2:1"), parsed("4:2"));
  EXPECT_TRUE(equal_functions(in_order, split));
  EXPECT_FALSE(equal_functions(in_order, mixed));
  EXPECT_TRUE(same_ownership(in_order, mixed));
  EXPECT_FALSE(same_ownership(in_order, across));
  EXPECT_FALSE(same_ownership(in_order, Fragment({8}, parsed("(2,2):(4,0)"), parsed("4:1"))));
  EXPECT_FALSE(same_ownership(in_order, Fragment({2, 4}, parsed("2:4"), parsed("4:1"))));
}

// (coordinates in the cover, with `axis` left out) of all that each thread holds.
std::vector<std::set<Coordinates>> lines_of(const Fragment& fragment, std::optional<size_t> axis) {
  std::vector<std::set<Coordinates>> lines(size_t(fragment.thread_count()));
  for_each_place(fragment, [&](Place place) {
    Coordinates at = cover_coordinates(fragment, place);
    if (axis) at.erase(at.begin() + ptrdiff_t(*axis));
    lines[size_t(place.thread)].insert(at);
  });
  return lines;
}

TEST(Reduced, LeavesEachThreadTheLinesItHadAPartIn) {
  int found = 0;
  for (const Fragment& fragment : many_fragments()) {
    for (size_t axis = 0; axis < fragment.shape().size(); ++axis) {
      std::string why;
      const auto result = reduced(fragment, axis, &why);
      ASSERT_NE(result.has_value(), !why.empty());
      if (!result) continue;
      ++found;
      ASSERT_EQ(result->thread_count(), fragment.thread_count());
      ASSERT_EQ(lines_of(*result, std::nullopt), lines_of(fragment, axis));
      ASSERT_GE(result->replicas(), fragment.replicas());
      ASSERT_TRUE(result->is_complete());
      // No register twice the same.
      ASSERT_TRUE(is_injective(result->registers()));
    }
  }
  EXPECT_GT(found, rounds(900));
}

TEST(Reduced, FoldsColumnsOfAnAccumulatorIntoFourReplicas) {
  const Fragment rows = reduced(Fragment({16, 8}, parsed("(4,8):(2,8)"), parsed("(2,2):(1,64)")), 1).value();
  EXPECT_TRUE(equal_functions(rows, Fragment({16}, parsed("(4,8):(0,1)"), parsed("2:8"))));
  EXPECT_EQ(rows.replicas(), 4);
}

TEST(Reduced, SaysWhyItCannot) {
  std::string why;
  EXPECT_FALSE(reduced(partition({3, 50}, {.threads = 64, .vector = 1}), 1, &why).has_value());
  EXPECT_EQ(why, "64:1 carries in (50,4):(0,1) after 50 steps, which do not divide 64");
}

TEST(Expanded, IsUndoneByReduced) {
  RandomLayouts random(42);
  int found = 0, shared = 0;
  for (const Fragment& fragment : many_fragments()) {
    const NewAxis axis{size_t(random.pick(0, int64_t(fragment.shape().size()))), random.pick(1, 12), random.pick(0, 4)};
    const auto result = expanded(fragment, axis);
    if (!result) continue;
    ++found;
    shared += result->replicas() < fragment.replicas();
    ASSERT_EQ(result->shape()[axis.at], axis.extent);
    ASSERT_TRUE(result->is_complete());
    ASSERT_EQ(result->thread_count(), fragment.thread_count());
    ASSERT_EQ(result->register_count() * fragment.replicas(),
              fragment.register_count() * result->replicas() * result->cover()[axis.at]);
    // Over the whole cover: threads whose places lie beyond the end held the line's elements, too.
    const auto back = reduced(Fragment(result->cover(), result->threads(), result->registers()), axis.at);
    ASSERT_TRUE(back.has_value());
    ASSERT_TRUE(equal_functions(*back, Fragment(fragment.cover(), fragment.threads(), fragment.registers())));
  }
  EXPECT_GT(found, rounds(700));
  EXPECT_GT(shared, rounds(20));
}

TEST(Expanded, SharesColumnsOutAmongReplicas) {
  const Fragment rows({16}, parsed("(4,8):(0,1)"), parsed("2:8"));
  const Fragment tile = expanded(rows, {.at = 1, .extent = 32}).value();
  EXPECT_TRUE(equal_functions(tile, Fragment({16, 32}, parsed("(4,8):(8,32)"), parsed("(8,2):(1,256)"))));
  const Fragment uneven = expanded(rows, {.at = 1, .extent = 6}).value();  // 2 each, of which 2 are none
  EXPECT_EQ(uneven.replicas(), 1);
  EXPECT_EQ(uneven.register_count(), 4);
  const Fragment pair = expanded(rows, {.at = 1, .extent = 2}).value();
  EXPECT_EQ(pair.replicas(), 2);
  EXPECT_EQ(pair.register_count(), 2);
}

TEST(Expanded, HoldsAsManyNeighboursTogetherAsAsked) {
  const Fragment rows({16}, parsed("(4,8):(0,1)"), parsed("2:8"));
  const Fragment tile = expanded(rows, {.at = 1, .extent = 32, .together = 2}).value();
  EXPECT_TRUE(equal_functions(tile, Fragment({16, 32}, parsed("(4,8):(2,32)"), parsed("(2,4,2):(1,8,256)"))));
  const Fragment uneven = expanded(rows, {.at = 1, .extent = 33, .together = 4}).value();
  EXPECT_EQ(uneven.cover(), (Shape{16, 48}));
  EXPECT_TRUE(uneven.is_complete());
}

TEST(Permuted, ExchangesCoordinates) {
  RandomLayouts random(43);
  int found = 0;
  for (const Fragment& fragment : many_fragments()) {
    std::vector<size_t> order(fragment.shape().size());
    std::iota(order.begin(), order.end(), size_t{0});
    random.shuffle(order);
    const auto result = permuted(fragment, order);
    if (!result) continue;
    ++found;
    for_each_place(fragment, [&](Place place) {
      const Coordinates from = cover_coordinates(fragment, place), to = cover_coordinates(*result, place);
      for (size_t i = 0; i < order.size(); ++i) ASSERT_EQ(to[i], from[order[i]]);
    });
    ASSERT_EQ(result->needs_guard(), fragment.needs_guard());
  }
  EXPECT_GT(found, rounds(700));
}

TEST(Leading, KeepsElementsWhereTheyWere) {
  RandomLayouts random(45);
  int found = 0, complete = 0;
  for (const Fragment& fragment : many_fragments()) {
    if (fragment.shape().empty()) continue;
    const auto axis = size_t(random.pick(0, int64_t(fragment.shape().size()) - 1));
    const int64_t extent = random.pick(1, fragment.shape()[axis]);
    if (fragment.shape() != fragment.cover()) continue;
    const auto result = leading(fragment, {axis, extent});
    if (!result) continue;
    ++found;
    complete += result->is_complete();
    ASSERT_EQ(result->thread_count(), fragment.thread_count());
    ASSERT_EQ(result->shape()[axis], extent);
    for_each_place(*result, [&](Place place) {
      const Coordinates at = cover_coordinates(*result, place);
      ASSERT_LT(at[axis], extent);
      bool held = false;
      for (int64_t reg = 0; reg < fragment.register_count(); ++reg)
        held = held || cover_coordinates(fragment, {place.thread, reg}) == at;
      ASSERT_TRUE(held);
    });
  }
  EXPECT_GT(found, rounds(200));
  EXPECT_GT(complete, rounds(100));
}

TEST(Repeated, LaysCopiesAlongAnAxis) {
  RandomLayouts random(44);
  int found = 0;
  for (const Fragment& fragment : many_fragments()) {
    if (fragment.shape().empty()) continue;
    const Across across = random.pick(0, 1) ? Across::threads : Across::registers;
    const Repeat repeat{size_t(random.pick(0, int64_t(fragment.shape().size()) - 1)), random.pick(1, 4), across};
    if (fragment.shape()[repeat.axis] != fragment.cover()[repeat.axis]) continue;
    const auto result = repeated(fragment, repeat);
    if (!result) continue;
    ++found;
    for_each_place(*result, [&](Place place) {
      const Place original{place.thread % fragment.thread_count(), place.reg % fragment.register_count()};
      const int64_t copy = place.thread / fragment.thread_count() + place.reg / fragment.register_count();
      Coordinates at = cover_coordinates(fragment, original);
      at[repeat.axis] += copy * fragment.shape()[repeat.axis];
      ASSERT_EQ(cover_coordinates(*result, place), at);
    });
    ASSERT_TRUE(result->is_complete());
  }
  EXPECT_GT(found, rounds(400));
}

TEST(Replicated, GivesFurtherThreadsTheSame) {
  for (const Fragment& fragment : many_fragments()) {
    const Fragment result = replicated(fragment, 3);
    ASSERT_EQ(result.thread_count(), 3 * fragment.thread_count());
    ASSERT_EQ(result.replicas(), 3 * fragment.replicas());
    for_each_place(result, [&](Place place) {
      ASSERT_EQ(result.element(place), fragment.element({place.thread % fragment.thread_count(), place.reg}));
    });
  }
}

// A vector is neighbours of one row, or nothing.
void expect_vectors(const Fragment& fragment, int64_t vector) {
  for_each_place(fragment, [&](Place place) {
    if (place.reg % vector == 0) return;
    const auto here = fragment.element(place), before = fragment.element({place.thread, place.reg - 1});
    ASSERT_EQ(here.has_value(), before.has_value());
    if (!here) return;
    ASSERT_EQ(*here, *before + 1);
    ASSERT_NE(*here % fragment.shape().back(), 0);
  });
}

TEST(Partition, DealsVectorsOut) {
  RandomLayouts random(45);
  for (int round = 0; round < rounds(500); ++round) {
    Shape shape;
    for (int64_t rank = random.pick(1, 3); rank > 0; --rank) shape.push_back(random.pick(1, 20));
    const Workers workers{random.pick(1, 40), int64_t{1} << random.pick(0, 3)};
    const int64_t vector = std::gcd(workers.vector, shape.back()), vectors = volume(shape) / vector;
    const Fragment flat = partition(shape, workers), rows = partition_rows(shape, workers);
    for (const Fragment* fragment : {&flat, &rows}) {
      ASSERT_EQ(fragment->thread_count(), workers.threads);
      ASSERT_TRUE(fragment->is_complete());
      expect_vectors(*fragment, vector);
      if (HasFatalFailure()) return;
    }
    // No more registers than an even share takes.
    ASSERT_EQ(flat.register_count(), (vectors + workers.threads - 1) / workers.threads * vector);
    ASSERT_TRUE(reduced(rows, shape.size() - 1).has_value());
  }
}

TEST(Partition, OfTilesThatComeOutEven) {
  const Fragment tile = partition({64, 128}, {.threads = 128, .vector = 8});
  EXPECT_TRUE(equal_functions(tile, Fragment({64, 128}, parsed("128:8"), parsed("(8,8):(1,1024)"))));
  EXPECT_FALSE(tile.needs_guard());
  EXPECT_EQ(partition({64}, {.threads = 128, .vector = 2}).replicas(), 4);
}

TEST(Partition, StandsIdleWhereItDoesNot) {
  const Fragment tile = partition({48}, {.threads = 32, .vector = 1});
  EXPECT_EQ(tile.register_count(), 2);
  EXPECT_EQ(tile.element({15, 1}), 47);
  EXPECT_EQ(tile.element({16, 1}), std::nullopt);
}

TEST(Partition, ByRowsKeepsARowAmongItsThreads) {
  const Fragment tile = partition_rows({6, 100}, {.threads = 128, .vector = 4});  // 25 vectors: 32 threads a row
  EXPECT_EQ(tile.cover(), (Shape{8, 128}));
  EXPECT_EQ(tile.element({24, 0}), 96);
  EXPECT_EQ(tile.element({25, 0}), std::nullopt);
  EXPECT_EQ(tile.element({32, 0}), 100);
  EXPECT_EQ(tile.element({63 + 32, 4}), std::nullopt);
  EXPECT_EQ(reduced(tile, 1)->replicas(), 32);
}

}  // namespace
}  // namespace tilepilot::layout
