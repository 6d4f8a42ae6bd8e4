// Swizzles, layouts of shared memory and what accesses to them cost.
#include "compiler/layout/swizzle.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <map>
#include <set>

#include "compiler/layout/bank_conflicts.h"
#include "compiler/layout/shared_layout.h"
#include "tests/layout/random_layouts.h"
#include "tests/rounds.h"

namespace tilepilot::layout {
namespace {

constexpr SwizzleSpan kSpans[] = {SwizzleSpan::bytes_32, SwizzleSpan::bytes_64, SwizzleSpan::bytes_128};

TEST(Swizzle, IsItsOwnInverseAndStaysInItsBlock) {
  for (int bits = 0; bits <= 4; ++bits) {
    for (int base = 0; base <= 4; ++base) {
      for (int shift = bits; shift <= 5; ++shift) {
        const Swizzle swizzle{bits, base, shift};
        std::set<int64_t> images;
        for (int64_t x = 0; x < 4096; ++x) {
          ASSERT_EQ(swizzle(swizzle(x)), x);
          ASSERT_EQ(swizzle(x) >> (base + bits), x >> (base + bits));
          images.insert(swizzle(x));
        }
        ASSERT_EQ(images.size(), 4096U);
      }
    }
  }
}

// The formula that states it in pieces of 16 bytes, on bytes and on elements.
TEST(Swizzle, MovesPiecesAsTheHardwareDoes) {
  for (SwizzleSpan span : kSpans) {
    const int64_t pieces = int64_t(span) / 16;
    for (int64_t bits : {4, 8, 16, 32, 64}) {
      const Swizzle swizzle = swizzle_of(span, bits);
      const int64_t row_length = int64_t(span) * 8 / bits, piece_length = 128 / bits;
      for (int64_t row = 0; row < 24; ++row) {
        for (int64_t column = 0; column < row_length; ++column) {
          const int64_t piece = column / piece_length ^ row % 8 * pieces / 8;
          ASSERT_EQ(swizzle(row * row_length + column),
                    row * row_length + piece * piece_length + column % piece_length);
        }
      }
    }
  }
}

// Offsets are distinct, below the size, lead back to the element, and nothing else does.
void expect_sound(const SharedLayout& layout) {
  std::map<int64_t, int64_t> elements;
  for (int64_t element = 0; element < volume(layout.shape()); ++element) {
    ASSERT_TRUE(elements.emplace(layout.offset(element), element).second) << "two at " << layout.offset(element);
  }
  ASSERT_GE(elements.begin()->first, 0);
  ASSERT_LT(elements.rbegin()->first, layout.size());
  ASSERT_EQ(layout.bytes(), (layout.size() * layout.element_bits() + 7) / 8);
  for (int64_t offset = 0; offset < layout.size() + 8; ++offset) {
    const auto known = elements.find(offset);
    ASSERT_EQ(layout.element_at(offset), known == elements.end() ? std::nullopt : std::optional(known->second));
  }
}

TEST(SharedLayout, FindsEveryElementAgain) {
  testing::RandomLayouts random(31);
  for (int round = 0; round < rounds(60); ++round) {
    Shape shape;
    for (int64_t rank = random.pick(0, 3); rank > 0; --rank) shape.push_back(random.pick(1, 9));
    const int64_t bits = int64_t{4} << random.pick(0, 4);
    expect_sound(SharedLayout::linear(shape, bits));
    expect_sound(SharedLayout::padded(shape, bits, random.pick(0, 9)));
    expect_sound(conflict_free_layout(shape, bits));
    expect_sound(conflict_free_rows(shape, bits));
    if (shape.empty()) continue;
    for (SwizzleSpan span : kSpans) {
      Shape wide = shape;
      wide.back() = random.pick(1, 3) * int64_t(span) * 8 / bits;
      expect_sound(SharedLayout::swizzled(wide, bits, span).value());
      expect_sound(conflict_free_layout(wide, bits));
    }
    if (HasFatalFailure()) return;
  }
}

TEST(SharedLayout, PutsEachPanelAfterTheOther) {
  const SharedLayout layout = SharedLayout::swizzled({3, 16, 128}, 16, SwizzleSpan::bytes_128).value();
  EXPECT_EQ(layout.size(), 3 * 16 * 128);
  EXPECT_EQ(layout.bytes(), 3 * 16 * 256);
  EXPECT_EQ(layout.alignment(), 1024);
  for (int64_t stage = 0; stage < 3; ++stage) {
    for (int64_t row = 0; row < 16; ++row) {
      for (int64_t column = 0; column < 128; ++column) {
        const int64_t swizzled = column % 64 ^ row % 8 * 8;
        EXPECT_EQ(layout.offset(row_major_index({3, 16, 128}, {stage, row, column})),
                  ((stage * 2 + column / 64) * 16 + row) * 64 + swizzled);
      }
    }
  }
}

TEST(SharedLayout, BeginsEachPanelWhereThePatternBegins) {
  const SharedLayout layout = SharedLayout::swizzled({5, 128}, 16, SwizzleSpan::bytes_128).value();
  EXPECT_EQ(layout.offset(64) * 2 % 1024, 0);
  EXPECT_EQ(layout.size(), 8 * 64 + 5 * 64);
}

TEST(SharedLayout, NeedsTheAlignmentOfItsSwizzle) {
  EXPECT_EQ(SharedLayout::linear({8, 64}, 16).alignment(), 128);
  EXPECT_EQ(SharedLayout::swizzled({8, 16}, 16, SwizzleSpan::bytes_32)->alignment(), 256);
  EXPECT_EQ(SharedLayout::swizzled({8, 32}, 16, SwizzleSpan::bytes_64)->alignment(), 512);
  EXPECT_EQ(SharedLayout::swizzled({8, 64}, 16, SwizzleSpan::bytes_128)->alignment(), 1024);
}

TEST(SharedLayout, RefusesRowsThatAreNoMultipleOfTheSpan) {
  std::string why;
  EXPECT_FALSE(SharedLayout::swizzled({8, 48}, 16, SwizzleSpan::bytes_64, &why).has_value());
  EXPECT_EQ(why, "rows of 768 bits are no multiple of 64 bytes");
}

std::vector<int64_t> strided(int64_t lanes, int64_t bytes) {
  std::vector<int64_t> addresses;
  for (int64_t lane = 0; lane < lanes; ++lane) addresses.push_back(lane * bytes);
  return addresses;
}

TEST(BankConflicts, OfPatternsThatManualsDescribe) {
  EXPECT_EQ(wavefronts(strided(32, 4), 4), 1);
  EXPECT_EQ(wavefronts(strided(32, 8), 4), 2);
  EXPECT_EQ(wavefronts(strided(32, 12), 4), 1);  // odd numbers of words meet no conflict
  EXPECT_EQ(wavefronts(strided(32, 128), 4), 32);
  EXPECT_EQ(wavefronts(std::vector<int64_t>(32, 64), 4), 1);  // one word for all
  EXPECT_EQ(wavefronts(strided(32, 2), 2), 1);
  EXPECT_EQ(wavefronts(strided(32, 1), 1), 1);
  EXPECT_EQ(wavefronts(strided(32, 8), 8), 2);
  EXPECT_EQ(wavefronts(strided(32, 16), 16), 4);
  EXPECT_EQ(wavefronts(strided(8, 16), 16), 1);
  EXPECT_EQ(wavefronts(strided(8, 128), 16), 8);
  EXPECT_EQ(bank_conflicts(strided(32, 8), 8), 0);
  EXPECT_EQ(bank_conflicts(strided(32, 16), 16), 0);
  EXPECT_EQ(bank_conflicts(strided(32, 128), 4), 31);
  EXPECT_EQ(wavefronts({}, 4), 0);
  EXPECT_EQ(wavefronts(std::vector<int64_t>(32, kNoAccess), 16), 0);
  std::vector<int64_t> half(32, kNoAccess);
  for (size_t lane = 0; lane < 32; lane += 2) half[lane] = int64_t(lane) * 128;
  EXPECT_EQ(wavefronts(half, 4), 16);
  EXPECT_EQ(bank_conflicts(half, 4), 15);
}

// Served word by word: each wavefront takes from each bank the first word that lanes still wait for.
int64_t served(const std::vector<int64_t>& addresses, int64_t bytes) {
  int64_t wavefronts = 0;
  const int64_t lanes = bytes <= 4 ? 32 : bytes == 8 ? 16 : 8;
  for (int64_t first = 0; first < 32; first += lanes) {
    std::map<int64_t, std::set<int64_t>> waiting;
    for (int64_t lane = first; lane < first + lanes; ++lane) {
      const int64_t address = addresses[size_t(lane)];
      for (int64_t byte = 0; address != kNoAccess && byte < bytes; ++byte) {
        waiting[(address + byte) / 4 % 32].insert((address + byte) / 4);
      }
    }
    for (bool any = true; any; wavefronts += any) {
      any = false;
      for (auto& [bank, words] : waiting) {
        if (words.empty()) continue;
        words.erase(words.begin());
        any = true;
      }
    }
  }
  return wavefronts;
}

TEST(BankConflicts, AreWhatServingWordByWordTakes) {
  testing::RandomLayouts random(32);
  for (int round = 0; round < rounds(3000); ++round) {
    const int64_t bytes = int64_t{1} << random.pick(0, 4), reach = random.pick(1, 300);
    std::vector<int64_t> addresses;
    for (int lane = 0; lane < 32; ++lane) {
      addresses.push_back(random.pick(0, 7) == 0 ? kNoAccess : random.pick(0, reach) * bytes);
    }
    ASSERT_EQ(wavefronts(addresses, bytes), served(addresses, bytes));
  }
}

// The byte addresses of the given elements.
std::vector<int64_t> addresses_of(const SharedLayout& layout, const std::vector<int64_t>& elements) {
  std::vector<int64_t> addresses;
  for (int64_t element : elements) addresses.push_back(layout.offset(element) * layout.element_bits() / 8);
  return addresses;
}

TEST(ConflictFreeLayout, MeetsNoConflictDownOrAlongRows) {
  for (int64_t bits : {8, 16, 32}) {
    for (int64_t row_bytes : {16, 32, 48, 64, 80, 96, 112, 128, 160, 192, 208, 256, 384, 512}) {
      const int64_t columns = row_bytes * 8 / bits, piece = 128 / bits;
      const SharedLayout layout = conflict_free_layout({32, columns}, bits);
      for (int64_t row = 0; row < 32; row += 8) {
        for (int64_t column = 0; column < columns; column += piece) {
          std::vector<int64_t> down;
          for (int64_t i = 0; i < 8; ++i) down.push_back((row + i) * columns + column);
          ASSERT_EQ(wavefronts(addresses_of(layout, down), 16), 1) << row_bytes << " bytes a row";
        }
      }
      for (int64_t first = 0; first + 8 <= columns * 32 / piece; first += 8) {
        if (row_bytes % 128 != 0 && 128 % row_bytes != 0) break;  // eight pieces would end within another row
        std::vector<int64_t> along;
        for (int64_t i = 0; i < 8; ++i) along.push_back((first + i) * piece);
        ASSERT_EQ(wavefronts(addresses_of(layout, along), 16), 1) << row_bytes << " bytes a row";
      }
    }
  }
}

TEST(ConflictFreeRows, MeetNoConflictDownOrWithinRows) {
  for (int64_t bits : {8, 16, 32}) {
    for (int64_t row_bytes : {16, 32, 48, 64, 80, 96, 112, 128, 160, 192, 208, 256, 320, 384, 512}) {
      const int64_t columns = row_bytes * 8 / bits, piece = 128 / bits;
      const SharedLayout layout = conflict_free_rows({32, columns}, bits);
      for (int64_t column = 0; column < columns; column += piece) {
        std::vector<int64_t> down, along;
        for (int64_t i = 0; i < 8; ++i) down.push_back((8 + i) * columns + column);
        ASSERT_EQ(wavefronts(addresses_of(layout, down), 16), 1) << row_bytes << " bytes a row";
        for (int64_t at = column; at < std::min(columns, column + 8 * piece); at += piece)
          along.push_back(3 * columns + at);
        ASSERT_EQ(wavefronts(addresses_of(layout, along), 16), 1) << row_bytes << " bytes a row";
      }
    }
  }
}

TEST(ConflictFreeLayout, TakesTheWidestSwizzleElsePads) {
  const auto of = [](Shape shape, int64_t bits) { return conflict_free_layout(shape, bits); };
  EXPECT_EQ(of({64, 128}, 16).span(), SwizzleSpan::bytes_128);
  EXPECT_EQ(of({64, 32}, 16).span(), SwizzleSpan::bytes_64);
  EXPECT_EQ(of({64, 48}, 16).span(), SwizzleSpan::bytes_32);
  EXPECT_EQ(of({64, 40}, 16).base(), testing::parsed("2560:1"));          // 5 pieces a row: odd already
  EXPECT_EQ(of({64, 36}, 16).base(), testing::parsed("(36,64):(1,40)"));  // 4.5 pieces become 5
  EXPECT_EQ(of({64, 28}, 16).base(), testing::parsed("(28,64):(1,40)"));  // 3.5 become 5
  EXPECT_EQ(of({64, 2}, 32).base(), testing::parsed("128:1"));
  EXPECT_EQ(of({1024}, 32).span(), SwizzleSpan::none);
}

}  // namespace
}  // namespace tilepilot::layout
