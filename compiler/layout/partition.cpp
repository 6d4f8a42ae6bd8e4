#include "compiler/layout/partition.h"

#include <algorithm>
#include <cassert>
#include <numeric>

namespace tilepilot::layout {
namespace {

int64_t divided_up(int64_t count, int64_t by) { return (count + by - 1) / by; }

// `items` dealt out to `threads`, one each, then again; item i is at i * stride.
struct Deal {
  Layout threads;
  int64_t rounds = 1;
  int64_t round_stride = 0;
};
Deal deal(int64_t items, int64_t threads, int64_t stride) {
  if (items >= threads) return {Layout{{threads, stride}}, divided_up(items, threads), threads * stride};
  if (threads % items == 0) return {Layout{{items, stride}, {threads / items, 0}}, 1, 0};
  return {Layout{{threads, stride}}, 1, 0};
}

// The fragment over `cover`, made as long as threads and registers reach.
Fragment covered(const Shape& shape, Shape cover, Layout threads, Layout registers) {
  const int64_t reach = threads.cosize() + registers.cosize() - 1;
  if (reach > volume(cover)) cover[0] = divided_up(reach, volume(cover) / cover[0]);
  return Fragment(shape, std::move(threads), std::move(registers), std::move(cover));
}

// The least divisor of `threads` that is at least `count`, else all.
int64_t group_of(int64_t count, int64_t threads) {
  int64_t group = std::min(count, threads);
  while (threads % group != 0) ++group;
  return group;
}

}  // namespace

Fragment partition(const Shape& shape, Workers workers) {
  assert(workers.threads >= 1 && workers.vector >= 1);
  const int64_t vector = std::gcd(workers.vector, shape.empty() ? 1 : shape.back());
  Deal vectors = deal(volume(shape) / vector, workers.threads, vector);
  Layout registers{{vector, 1}, {vectors.rounds, vectors.round_stride}};
  return covered(shape, shape, std::move(vectors.threads), std::move(registers));
}

Fragment partition_rows(const Shape& shape, Workers workers) {
  assert(workers.threads >= 1 && workers.vector >= 1 && !shape.empty());
  const int64_t vector = std::gcd(workers.vector, shape.back());
  const int64_t vectors = shape.back() / vector, group = group_of(vectors, workers.threads);
  const int64_t vector_rounds = divided_up(vectors, group);
  Shape cover = shape;
  cover.back() = vector * group * vector_rounds;
  Deal rows = deal(volume(shape) / shape.back(), workers.threads / group, cover.back());
  Layout threads = concatenated(Layout{{group, vector}}, rows.threads);
  Layout registers{{vector, 1}, {vector_rounds, vector * group}, {rows.rounds, rows.round_stride}};
  return covered(shape, std::move(cover), std::move(threads), std::move(registers));
}

}  // namespace tilepilot::layout
