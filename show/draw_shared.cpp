#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "compiler/layout/print.h"
#include "show/drawings.h"

namespace tilepilot::show {
namespace {

constexpr double kWide = 36, kHigh = 20, kMargin = 52, kLineHigh = 18;
constexpr int64_t kBanks = 32, kBytesOfWord = 4, kBytesOfRow = kBanks * kBytesOfWord, kBytesOfPiece = 16;

// One colour for each 16 bytes of a row of the tile: a swizzle exchanges these.
std::string colour(int64_t piece) { return fmt::format("hsl({},65%,80%)", piece % 8 * 45); }

std::string layout_words(const SharedPicture& tile) {
  const auto span = tile.layout.span();
  if (span != layout::SwizzleSpan::none) return fmt::format("swizzled by {} bytes", static_cast<int>(span));
  return tile.layout.size() != layout::volume(tile.layout.shape()) ? "rows padded" : "row after row";
}

void draw_words(Svg& svg, const SharedPicture& tile, int64_t rows, double top) {
  const int64_t bits = tile.layout.element_bits(), per_word = std::max<int64_t>(1, 32 / bits);
  const Grid grid(tile.layout.shape());
  for (int64_t bank = 0; bank < kBanks; ++bank)
    svg.text(kMargin + kWide * (static_cast<double>(bank) + 0.5), top + 12, fmt::format("{}", bank), "tp-t tp-m");
  for (int64_t row = 0; row < rows; ++row) {
    const double y = top + 18 + kHigh * static_cast<double>(row);
    svg.text(kMargin - 5, y + 14, fmt::format("+{}", row * kBytesOfRow), "tp-t tp-e");
    for (int64_t bank = 0; bank < kBanks; ++bank) {
      const double x = kMargin + kWide * static_cast<double>(bank);
      const int64_t byte = row * kBytesOfRow + bank * kBytesOfWord, offset = byte * 8 / bits;
      const auto element = offset < tile.layout.size() ? tile.layout.element_at(offset) : std::nullopt;
      if (!element) {
        if (offset < tile.layout.size())
          svg.rect(x, y, kWide, kHigh, "tp-none", {fmt::format("bytes {} to {}: padding", byte, byte + 3), tile.line});
        continue;
      }
      const int64_t at_row = *element / grid.columns, at_column = *element % grid.columns;
      const std::string title =
          fmt::format("{}[{}, {}]{}: bytes {} to {} of the tile, bank {}", tile.name, at_row, at_column,
                      per_word > 1 ? fmt::format(" and the {} after it", per_word - 1) : "", byte, byte + 3, bank);
      svg.rect(x, y, kWide, kHigh, colour(at_column * bits / 8 / kBytesOfPiece), {title, tile.line});
      svg.text(x + kWide / 2, y + 14, fmt::format("{},{}", at_row, at_column), "tp-c");
    }
  }
}

// A bar for each access: wavefronts for each that would do.
double draw_accesses(Svg& svg, const SharedPicture& tile, double top) {
  double y = top;
  for (const SharedAccess& access : tile.accesses) {
    const bool bad = access.conflicts > 0;
    const std::string where = access.line > 0 ? fmt::format("line {}", access.line) : "no line of this file";
    const std::string words = fmt::format(
        "{}: {} of {} bytes a lane: {:.2g} wavefronts for each that would do ({} of {} "
        "for bank conflicts)",
        where, access.what, access.width, access.degree(), access.conflicts, access.wavefronts);
    svg.rect(4, y, 10 * std::min(access.degree(), 32.0), 12, bad ? "tp-bad" : "tp-product", {words, access.line});
    svg.text(18 + 10 * std::min(access.degree(), 32.0), y + 11, words);
    y += kLineHigh;
  }
  return y;
}

}  // namespace

Svg draw(const SharedPicture& tile, const DrawingLimits& limits) {
  Svg svg(fmt::format("shared memory of {}", tile.name));
  const std::string stages = tile.stages > 1 ? fmt::format(", a ring of {} stages", tile.stages) : "";
  svg.caption(
      fmt::format("{}: {} {}{}, {}", tile.name, tile.type, shape_text(tile.layout.shape()), stages, layout_words(tile)),
      true);
  const int64_t bytes = tile.layout.bytes(), all = (bytes + kBytesOfRow - 1) / kBytesOfRow;
  const int64_t rows = std::min(all, limits.rows);
  const std::string crop = rows < all ? fmt::format("; shown: the first {} of {} rows of banks", rows, all) : "";
  svg.caption(
      fmt::format("bytes {} to {} of the block's shared memory; a cell is a bank's word and names the first "
                  "element in it, a colour 16 bytes of a row{}",
                  tile.offset, tile.offset + tile.bytes - 1, crop));
  if (!tile.shares.empty())
    svg.caption(fmt::format("the same memory holds {} at other times; accesses are shown for both",
                            fmt::join(tile.shares, ", ")));
  if (tile.by_tma) svg.caption("TMA copies between it and global memory; the emulator counts no banks of that");
  if (tile.accesses.empty())
    svg.caption("the emulator has seen no access of a thread to it; wgmma and TMA read it as it lies");
  double top = svg.top();
  draw_words(svg, tile, rows, top);
  top += 18 + kHigh * static_cast<double>(rows) + 14;
  top = draw_accesses(svg, tile, top);
  svg.extend(560, top);
  return svg;
}

}  // namespace tilepilot::show
