// wgmma.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "compiler/emulator/async_proxy.h"
#include "compiler/emulator/matrix_place.h"
#include "compiler/emulator/tensor_core.h"

namespace tilepilot::emulator {
namespace {

using emulated::operand;
using emulated::wgmma_lane;

constexpr int64_t kChunk = 16;

// Ranges of the chunks that hold these addresses.
std::vector<std::pair<int64_t, int64_t>> ranges_of(std::vector<int64_t> addresses) {
  for (int64_t& address : addresses) address = address / kChunk * kChunk;
  std::sort(addresses.begin(), addresses.end());
  std::vector<std::pair<int64_t, int64_t>> ranges;
  for (const int64_t address : addresses) {
    if (!ranges.empty() && address <= ranges.back().second)
      ranges.back().second = std::max(ranges.back().second, address + kChunk);
    else
      ranges.emplace_back(address, address + kChunk);
  }
  return ranges;
}

}  // namespace

MatrixPlace::MatrixPlace(uint64_t descriptor)
    : start(static_cast<int64_t>(descriptor & 0x3fff) << 4),
      leading(static_cast<int64_t>(descriptor >> 16 & 0x3fff) << 4),
      stride(static_cast<int64_t>(descriptor >> 32 & 0x3fff) << 4),
      width(16) {
  constexpr int64_t kWidths[] = {16, 128, 64, 32};
  width = kWidths[descriptor >> 62];
}

int64_t MatrixPlace::at(int64_t mn, int64_t k, int64_t bytes, bool transposed) const {
  int64_t offset = 0;
  if (!transposed) {
    const int64_t byte = k * bytes;
    offset = mn / 8 * stride + mn % 8 * width;
    offset += width == kChunk ? byte / kChunk * leading + byte % kChunk : byte;
  } else {
    const int64_t run = width / bytes;
    const int64_t across = width == kChunk ? stride : leading, along = width == kChunk ? leading : stride;
    offset = mn % run * bytes + mn / run * across + k % 8 * width + k / 8 * along;
  }
  return swizzled(start + offset, width);
}

// Each warp of the group makes its 16 rows.
void AsyncProxy::multiply(int first_thread, std::span<void* const> lanes, uint32_t fences) {
  const auto& first = *static_cast<const wgmma_lane*>(lanes[0]);
  const emulated::wgmma_shape& shape = first.shape;
  const operand sum_type = static_cast<operand>(shape.types & 15u),
                a_type = static_cast<operand>(shape.types >> 4 & 15u),
                b_type = static_cast<operand>(shape.types >> 8 & 15u);
  const Moment now = block_.now_of(first_thread);
  issue(first_thread, first);
  std::vector<int64_t> addresses;
  const auto load = [&](const MatrixPlace& place, operand type, int64_t mn, int64_t k, bool transposed) {
    const int64_t address = place.at(mn, k, bytes_of(type), transposed);
    addresses.push_back(address);
    return address;
  };
  std::vector<int64_t> a_at, b_at;
  const int64_t row = first_thread / 32 % 4 * 16;
  if (!shape.a_in_registers)
    for (int64_t i = 0; i < 16; ++i)
      for (int64_t k = 0; k < shape.k; ++k)
        a_at.push_back(load(MatrixPlace(first.a_place), a_type, row + i, k, shape.a_transposed));
  for (int64_t k = 0; k < shape.k; ++k)
    for (int64_t j = 0; j < shape.n; ++j)
      b_at.push_back(load(MatrixPlace(first.b_place), b_type, j, k, shape.b_transposed));

  Own& own = owns_[static_cast<size_t>(first_thread)];
  const char* arena = nullptr;
  for (const auto& [begin, end] : ranges_of(std::move(addresses))) {
    const emulated::shared_place place{begin, 0, static_cast<uint32_t>(memories_.arena_bytes())};
    Moment begun = now;
    const char* memory = memories_.begin_read(place, end - begin, begun);
    if (memory == nullptr) block_.abandon();
    arena = memory - begin;
    own.wgmma.under_way.push_back({begin, end - begin, own.wgmma.groups, begun});
  }

  std::vector<double> a(static_cast<size_t>(16 * shape.k)), b(b_at.size()), sum(static_cast<size_t>(16 * shape.n));
  for (size_t i = 0; i < a_at.size(); ++i) a[i] = operand_value(a_type, arena + a_at[i], 0);
  for (size_t i = 0; i < b.size(); ++i) b[i] = operand_value(b_type, arena + b_at[i], 0);
  const int run = std::max(1, 4 / bytes_of(a_type));
  const auto each_sum = [&](auto&& visit) {
    for (int lane = 0; lane < 32; ++lane) {
      auto& held = *static_cast<wgmma_lane*>(lanes[static_cast<size_t>(lane)]);
      for (int i = 0; i < shape.n / 2; ++i) {
        const int r = lane / 4 + 8 * (i / 2 % 2), c = i / 4 * 8 + lane % 4 * 2 + i % 2;
        visit(held, lane, i, sum[static_cast<size_t>(r * shape.n + c)]);
      }
    }
  };
  if (shape.a_in_registers) {
    for (int lane = 0; lane < 32; ++lane) {
      const auto& held = *static_cast<const wgmma_lane*>(lanes[static_cast<size_t>(lane)]);
      for (int i = 0; i < 16 * shape.k / 32; ++i) {
        const int r = i / run, at_row = lane / 4 + 8 * (r % 2), at_k = r / 2 * 4 * run + lane % 4 * run + i % run;
        a[static_cast<size_t>(at_row * shape.k + at_k)] = operand_value(a_type, held.a, i);
      }
    }
  }
  if (first.accumulate)
    each_sum([&](wgmma_lane& held, int lane, int i, double& x) {
      check_sum(held, first_thread + lane, i);
      x = sum_value(sum_type, held.c, i);
    });
  for (size_t i = 0; i < 16; ++i)
    for (size_t k = 0; k < static_cast<size_t>(shape.k); ++k)
      for (size_t j = 0; j < static_cast<size_t>(shape.n); ++j)
        sum[i * static_cast<size_t>(shape.n) + j] +=
            a[i * static_cast<size_t>(shape.k) + k] * b[k * static_cast<size_t>(shape.n) + j];
  each_sum([&](wgmma_lane& held, int, int i, double& x) { put_sum(sum_type, held.c, i, x); });
  for (int lane = 0; lane < 32; ++lane)
    hold_registers(*static_cast<wgmma_lane*>(lanes[static_cast<size_t>(lane)]), first_thread + lane, fences);
}

// All warps of a warpgroup execute the same wgmma, one after the other.
void AsyncProxy::issue(int first_thread, const wgmma_lane& lane) {
  Warpgroup& group = groups_[static_cast<size_t>(first_thread / 128)];
  int64_t& count = group.counts[static_cast<size_t>(first_thread / 32 % 4)];
  const auto place = static_cast<size_t>(count++ - group.done);
  const Moment now = block_.now_of(first_thread);
  if (place == group.issued.size()) {
    group.issued.push_back({lane.shape, lane.a_place, lane.b_place, lane.accumulate, now});
  } else {
    const Issue& other = group.issued[place];
    const auto& [shape, a_place, b_place, accumulate, first] = other;
    const bool same = shape.n == lane.shape.n && shape.k == lane.shape.k && shape.types == lane.shape.types &&
                      shape.a_in_registers == lane.shape.a_in_registers &&
                      shape.a_transposed == lane.shape.a_transposed && shape.b_transposed == lane.shape.b_transposed &&
                      a_place == lane.a_place && b_place == lane.b_place && accumulate == lane.accumulate;
    if (!same)
      tell(DefectKind::divergence, first, now,
           fmt::format("warp {} executes another wgmma than warp {} of its warpgroup, at {}", first_thread / 32,
                       first.thread % block_.size() / 32, reporter_.place(first.site)));
  }
  for (const auto least = std::min_element(group.counts.begin(), group.counts.end()); group.done < *least; ++group.done)
    group.issued.pop_front();
}

// @pre the block is over
void AsyncProxy::check_groups() {
  for (const Warpgroup& group : groups_) {
    if (group.issued.empty()) continue;
    const Moment& first = group.issued.front().first;
    tell(DefectKind::divergence, first, first,
         fmt::format("warp {} executes a wgmma without others of its warpgroup, who execute {}, {}, {} and {}",
                     first.thread % block_.size() / 32, group.counts[0], group.counts[1], group.counts[2],
                     group.counts[3]));
  }
}

// The reads of a warp's wgmma are complete for each of its threads, and those that synchronise with them. Nothing else
// is ordered.
void AsyncProxy::wait_wgmma(int first_thread, int64_t under_way) {
  const auto over_before = [&](const Read& read, const Reads& reads) { return read.group < reads.groups - under_way; };
  Reads& products = owns_[static_cast<size_t>(first_thread)].wgmma;
  if (!products.under_way.empty() && over_before(products.under_way.front(), products)) {
    Knowledge over;
    const Moment end = clocks_.moment_beside(Clocks::Beside::products, block_.now_of(first_thread).thread / 32,
                                             products.under_way.front().begun.site, over);
    end_reads(products, under_way, end);
    for (int thread = first_thread; thread < first_thread + 32; ++thread)
      clocks_.acquire(block_.now_of(thread).thread, over);
  }
  for (int thread = first_thread; thread < first_thread + 32; ++thread)
    give_back(owns_[static_cast<size_t>(thread)], thread, under_way);
}

void AsyncProxy::tell(DefectKind kind, const Moment& first, const Moment& second, std::string message) {
  if (reporter_.is_new(kind, first, second)) reporter_.add(kind, first, second, std::move(message));
}

// A sum to add to: written, or under way.
void AsyncProxy::check_sum(const wgmma_lane& held, int thread, int index) {
  const emulated::register_marks mark{held.c_marks.written + index, 1};
  if (*mark.written != 0) return;
  for (const Registers& sums : owns_[static_cast<size_t>(thread)].sums)
    if (sums.overlap(mark)) return;
  const Moment now = block_.now_of(thread);
  tell(DefectKind::uninitialised_read, now, now,
       fmt::format("thread {} adds to register {} of a wgmma, which nothing has written", thread, index));
}

// What a thread does to registers comes before a wgmma that uses them if `wgmma_fence` stands between (PTX ISA,
// "wgmma.fence").
void AsyncProxy::check_fenced(const emulated::register_marks& marks, const char* what, int thread) {
  const uint32_t fences = owns_[static_cast<size_t>(thread)].fences;
  const Moment now = block_.now_of(thread);
  for (int k = 0; k < marks.count; ++k)
    if (marks.written[k] >= fences && marks.written[k] != 0)
      return tell(DefectKind::missing_fence, now, now,
                  fmt::format("thread {} starts a wgmma with register {} of {}, which it has written since its last "
                              "wgmma_fence",
                              thread, k, what));
  if (fences == 0)
    tell(DefectKind::missing_fence, now, now, fmt::format("thread {} starts a wgmma before any wgmma_fence", thread));
}

void AsyncProxy::hold_registers(wgmma_lane& lane, int thread, uint32_t fences) {
  Own& own = owns_[static_cast<size_t>(thread)];
  const Moment now = block_.now_of(thread);
  check_fenced(lane.c_marks, "its sums", thread);
  if (lane.a_marks.count != 0) {
    check_fenced(lane.a_marks, "A", thread);
    own.of_a.push_back({lane.a_marks, own.wgmma.groups, fences, now});
  }
  // Accumulators of an earlier outstanding wgmma are complete when this one is.
  std::erase_if(own.sums, [&](const Registers& other) {
    return other.marks.written == lane.c_marks.written && other.marks.count == lane.c_marks.count;
  });
  std::fill(lane.c_marks.written, lane.c_marks.written + lane.c_marks.count, 0u);
  own.sums.push_back({lane.c_marks, own.wgmma.groups, fences, now});
}

// Products that are over: their sums can be read, and their registers of A written.
void AsyncProxy::give_back(Own& own, int thread, int64_t under_way) {
  const auto is_over = [&](const std::deque<Registers>& all) {
    return !all.empty() && all.front().group < own.wgmma.groups - under_way;
  };
  const Moment now = block_.now_of(thread);
  const auto changed = [&](const Registers& held, int k, const char* what) {
    tell(DefectKind::data_race, held.begun, now,
         fmt::format("thread {} writes register {} of {} while the wgmma is outstanding", thread, k, what));
  };
  for (; is_over(own.of_a); own.of_a.pop_front()) {
    const Registers& held = own.of_a.front();
    for (int k = 0; k < held.marks.count; ++k)
      if (held.marks.written[k] > held.fences) changed(held, k, "A");
  }
  while (is_over(own.sums)) {
    const Registers held = own.sums.front();
    own.sums.pop_front();
    for (int k = 0; k < held.marks.count; ++k) {
      const emulated::register_marks mark{held.marks.written + k, 1};
      if (std::any_of(own.sums.begin(), own.sums.end(), [&](const Registers& other) { return other.overlap(mark); }))
        continue;
      if (*mark.written != 0) changed(held, k, "the sums");
      *mark.written = 1;
    }
  }
}

}  // namespace tilepilot::emulator
