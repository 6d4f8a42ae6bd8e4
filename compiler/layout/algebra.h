// The algebra of layouts: composition, complement, inverses, division and product. Each operation states what the
// result does on every index; where no layout does that, there is no result, and `why` (if given) says what is in the
// way.
#pragma once

#include <span>

#include "compiler/layout/layout.h"

namespace tilepilot::layout {

// outer o inner: the layout i -> outer(inner(i)).
// It exists when no addition in `inner` carries: write each stride of `inner` in the mixed radix of coalesce(outer). As
// long as digits add up to less than their extent, outer(x + y) = outer(x) + outer(y), so a mode e:d of `inner` becomes
// e:outer(d). A mode that would carry alone is cut where it first does, if that divides it. This accepts all that rules
// of divisibility accept, and more: 2:3 within a digit of 4, or a diagonal. A carry changes the value (else the modes
// of `outer` would have coalesced), so what is refused is no layout over the modes of `inner`, except where several
// carries at once cancel out.
// @post size(result) == size(inner), and result(i) == outer(inner(i)) for each i
std::optional<Layout> compose(const Layout& outer, const Layout& inner, std::string* why = nullptr);
// outer o (inner_0, inner_1, ...), with the modes of each part kept apart.
// @post concatenated(results...) == compose(outer, concatenated(inner...)), and size(results[k]) == size(inner[k])
std::optional<std::vector<Layout>> compose(const Layout& outer, const std::vector<Layout>& inner,
                                           std::string* why = nullptr);

// What is missing to [0, count), ascending.
// @post is_bijective(concatenated(layout, result), count), and result(i) < result(i + 1); this makes it unique
// @post none exists if and only if no set of numbers added to the values of `layout` gives each of [0, count) once
std::optional<Layout> complement(const Layout& layout, int64_t count, std::string* why = nullptr);
// The least count for which `layout` has a complement; the others are its multiples.
std::optional<int64_t> period(const Layout& layout, std::string* why = nullptr);

// The longest layout with @post layout(result(j)) == j for each j of [0, size(result)).
// For a bijective layout it is the inverse. (Of layouts that repeat values, a longer one may exist.)
Layout right_inverse(const Layout& layout);
// A layout on the period of `layout` with @post result(layout(i)) == i for each i. None if there is no period.
std::optional<Layout> left_inverse(const Layout& layout, std::string* why = nullptr);

struct Divided {
  Layout tile;  // layout o tiler
  Layout rest;  // layout o complement(tiler, size(layout)): from tile to tile
};
// `layout` cut into tiles.
// @post tile(i) + rest(j) == layout(tiler(i) + complement(tiler, size(layout))(j))
// @post both together have the values of `layout`, each as often
std::optional<Divided> logical_divide(const Layout& layout, const Layout& tiler, std::string* why = nullptr);

// `tile` laid out again and again, in the order of `order`: the layout of the copies, to be concatenated with `tile`.
// @post result == complement(tile, enough) o order
// @post injective `tile` and `order` give an injective concatenated(tile, result)
std::optional<Layout> logical_product(const Layout& tile, const Layout& order, std::string* why = nullptr);

// The layout (coalesced) with these values, if any.
// @post exists if and only if some layout of size values.size() has exactly these values
std::optional<Layout> layout_of_values(std::span<const int64_t> values);

}  // namespace tilepilot::layout
