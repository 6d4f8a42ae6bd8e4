// Tables and drawings, compared with stored ones.
#include "compiler/layout/print.h"

#include "compiler/layout/partition.h"
#include "compiler/layout/reshape.h"
#include "compiler/layout/svg.h"
#include "tests/golden.h"
#include "tests/layout/atom_named.h"

namespace tilepilot::layout {
namespace {

using testing::atom_named;
using testing::half_atom;

void expect_text(const std::string& name, const std::string& text) {
  tilepilot::testing::expect_golden("layout/golden/" + name, text);
}

TEST(Table, OfFragments) {
  std::string text;
  for (const Fragment& fragment : {
           c_fragment(half_atom()),
           reduced(c_fragment(half_atom()), 1).value(),
           partition_rows({2, 3, 10}, {.threads = 8, .vector = 2}),
           Fragment({2, 4}, Layout{{2, 4}}, Layout{{2, 1}}),
           Fragment({}, Layout{{32, 0}}, Layout()),
           c_fragment(with_n(atom_named("wgmma.mma_async.m64nNk16", "f16 bf16"), 128)),
       }) {
    text += table(fragment, {.rows = 20, .columns = 10}) + "\n";
  }
  expect_text("fragments.txt", text);
}

TEST(Table, OfSharedMemory) {
  std::string text;
  for (const SharedLayout& layout : {
           SharedLayout::linear({3, 4}, 32),
           SharedLayout::padded({3, 4}, 32, 1),
           SharedLayout::swizzled({8, 32}, 32, SwizzleSpan::bytes_128).value(),
           SharedLayout::swizzled({2, 9, 64}, 16, SwizzleSpan::bytes_64).value(),
       }) {
    text += table(layout, {.rows = 12, .columns = 33}) + "\n";
  }
  expect_text("shared.txt", text);
}

TEST(Svg, OfAFragment) { expect_text("m8n8k4_accumulator.svg", svg(c_fragment(atom_named("mma.sync.m8n8k4", "f64")))); }

TEST(Svg, OfSharedMemory) {
  expect_text("swizzle_32.svg", svg(SharedLayout::swizzled({8, 8}, 32, SwizzleSpan::bytes_32).value()));
}

TEST(Svg, LeavesOutWhatDoesNotFit) {
  const std::string all = svg(SharedLayout::linear({9, 9}, 8)), part = svg(SharedLayout::linear({9, 9}, 8), {2, 3});
  const auto squares = [](const std::string& text) {
    int count = 0;
    for (size_t at = text.find("<rect"); at != std::string::npos; at = text.find("<rect", at + 1)) ++count;
    return count;
  };
  EXPECT_EQ(squares(all), 81);
  EXPECT_EQ(squares(part), 6);
}

}  // namespace
}  // namespace tilepilot::layout
