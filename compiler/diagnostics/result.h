// Result<T>: a value or the diagnostic of a user's error. Propagate with TRY; never ignore one.
#pragma once

#include <memory>
#include <optional>
#include <utility>

#include "compiler/diagnostics/diagnostic.h"

namespace tilepilot {

// Making and dropping errors is compiled once, in result.cpp, and not into each of the hundreds of places that do it:
// that is less code to optimise, and it is never the fast path.
struct DeleteDiagnostic {
  void operator()(Diagnostic* diagnostic) const noexcept;
};
// An error on its way up. Small, so that Result<T> stays small on the success path.
using Error = std::unique_ptr<Diagnostic, DeleteDiagnostic>;

[[gnu::cold]] Error make_error(DiagnosticKind kind, Span span, std::string_view message, std::string_view hint = {});
[[gnu::cold]] Error make_error(Diagnostic diagnostic);

template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : value_(std::move(value)) {}
  Result(Error error) : error_(std::move(error)) {}
  // Anything that converts to T, so that `return derived_pointer;` works.
  template <class U>
  requires(std::is_convertible_v<U&&, T> && !std::is_same_v<std::remove_cvref_t<U>, T> &&
           !std::is_same_v<std::remove_cvref_t<U>, Error> && !std::is_same_v<std::remove_cvref_t<U>, Result>)
      Result(U&& value)
      : value_(std::forward<U>(value)) {}

  bool ok() const { return !error_; }
  explicit operator bool() const { return ok(); }
  T& operator*() & { return *value_; }
  const T& operator*() const& { return *value_; }
  T&& operator*() && { return *std::move(value_); }
  T* operator->() { return &*value_; }
  const T* operator->() const { return &*value_; }
  const Diagnostic& error() const { return *error_; }
  Error take_error() && { return std::move(error_); }

 private:
  std::optional<T> value_;
  Error error_;
};

template <>
class [[nodiscard]] Result<void> {
 public:
  Result() = default;
  Result(Error error) : error_(std::move(error)) {}
  bool ok() const { return !error_; }
  explicit operator bool() const { return ok(); }
  const Diagnostic& error() const { return *error_; }
  Error take_error() && { return std::move(error_); }
  void operator*() const {}

 private:
  Error error_;
};

using Status = Result<void>;

}  // namespace tilepilot

// TRY(expression): the value of a Result, or an early return of its error from the enclosing function. Write it as a
// whole statement, a whole initialiser or the only argument of a call: what the rest of a larger expression has built
// by then would never be destroyed (GCC, "Statements and Declarations in Expressions").
#define TRY(...)                                                     \
  __extension__({                                                    \
    auto tp_result_ = (__VA_ARGS__);                                 \
    if (!tp_result_.ok()) return std::move(tp_result_).take_error(); \
    *std::move(tp_result_);                                          \
  })
