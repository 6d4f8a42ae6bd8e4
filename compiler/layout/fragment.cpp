#include "compiler/layout/fragment.h"

#include <algorithm>
#include <cassert>
#include <functional>

namespace tilepilot::layout {
namespace {

std::vector<std::optional<int64_t>> elements_of(const Fragment& fragment, int64_t thread) {
  std::vector<std::optional<int64_t>> elements;
  for (int64_t reg = 0; reg < fragment.register_count(); ++reg) elements.push_back(fragment.element({thread, reg}));
  return elements;
}

// Without places that hold nothing, each element once.
std::vector<std::optional<int64_t>> element_set(const Fragment& fragment, int64_t thread) {
  std::vector<std::optional<int64_t>> elements = elements_of(fragment, thread);
  std::sort(elements.begin(), elements.end());
  elements.erase(std::unique(elements.begin(), elements.end()), elements.end());
  if (!elements.empty() && !elements.front()) elements.erase(elements.begin());
  return elements;
}

template <class Elements>
bool same_for_each_thread(const Fragment& a, const Fragment& b, Elements elements) {
  if (a.shape() != b.shape() || a.thread_count() != b.thread_count()) return false;
  for (int64_t thread = 0; thread < a.thread_count(); ++thread) {
    if (elements(a, thread) != elements(b, thread)) return false;
  }
  return true;
}

}  // namespace

Fragment::Fragment(Shape shape, Layout threads, Layout registers, Shape cover)
    : shape_(std::move(shape)),
      cover_(cover.empty() ? shape_ : std::move(cover)),
      threads_(std::move(threads)),
      registers_(std::move(registers)) {
  assert(shape_.size() == cover_.size());
  assert(std::equal(shape_.begin(), shape_.end(), cover_.begin(), std::less_equal<>()));
  assert(threads_.cosize() + registers_.cosize() - 1 <= volume(cover_));
}

int64_t Fragment::replicas() const {
  int64_t replicas = 1;
  for (const Mode& mode : threads_.modes()) replicas *= mode.stride == 0 ? mode.extent : 1;
  return replicas;
}

std::optional<int64_t> Fragment::element(Place place) const {
  const int64_t index = threads_(place.thread) + registers_(place.reg);
  if (shape_ == cover_) return index;
  const Coordinates at = coordinates(cover_, index);
  if (!std::equal(at.begin(), at.end(), shape_.begin(), std::less<>())) return std::nullopt;
  return row_major_index(shape_, at);
}

std::vector<Place> Fragment::owners(int64_t element) const {
  const int64_t index = shape_ == cover_ ? element : row_major_index(cover_, coordinates(shape_, element));
  std::vector<Place> owners;
  for (int64_t place : preimages(concatenated(threads_, registers_), index)) {
    owners.push_back({place % thread_count(), place / thread_count()});
  }
  return owners;
}

bool Fragment::is_complete() const {
  for (int64_t element = 0; element < volume(shape_); ++element) {
    if (owners(element).empty()) return false;
  }
  return true;
}

bool Fragment::needs_guard() const {
  if (shape_ == cover_) return false;
  for (int64_t thread = 0; thread < thread_count(); ++thread) {
    const auto elements = elements_of(*this, thread);
    if (std::find(elements.begin(), elements.end(), std::nullopt) != elements.end()) return true;
  }
  return false;
}

bool equal_functions(const Fragment& a, const Fragment& b) {
  if (a.register_count() != b.register_count()) return false;
  if (a.shape() == b.shape() && a.cover() == b.cover() && equal_functions(a.threads(), b.threads()) &&
      equal_functions(a.registers(), b.registers())) {
    return true;  // the common case, without a look at each place
  }
  return same_for_each_thread(a, b, elements_of);
}

bool same_ownership(const Fragment& a, const Fragment& b) { return same_for_each_thread(a, b, element_set); }

}  // namespace tilepilot::layout
