#include "eval/host/arguments.h"

#include <ATen/core/Reduction.h>
#include <c10/util/Exception.h>

namespace tilepilot::eval {

const c10::IValue& Arguments::operator[](std::string_view name) const {
  size_t index = signature_.index_of(name);
  TORCH_INTERNAL_ASSERT(index != Signature::npos, "no parameter ", name, " in ", signature_.text());
  return values_[index];
}

std::optional<at::Tensor> Arguments::maybe_tensor(std::string_view name) const {
  return (*this)[name].toOptional<at::Tensor>();
}

std::optional<int64_t> Arguments::maybe_integer(std::string_view name) const {
  return (*this)[name].toOptional<int64_t>();
}

std::optional<double> Arguments::maybe_real(std::string_view name) const {
  return given(name) ? std::optional(real(name)) : std::nullopt;
}

std::optional<bool> Arguments::maybe_flag(std::string_view name) const { return (*this)[name].toOptional<bool>(); }

std::vector<int64_t> Arguments::integers(std::string_view name) const {
  return given(name) ? (*this)[name].toIntVector() : std::vector<int64_t>();
}

std::vector<double> Arguments::reals(std::string_view name) const {
  return given(name) ? (*this)[name].toDoubleVector() : std::vector<double>();
}

std::optional<at::ScalarType> Arguments::dtype(std::string_view name) const {
  if (!given(name)) return std::nullopt;
  return static_cast<at::ScalarType>(integer(name));
}

std::optional<at::MemoryFormat> Arguments::memory_format(std::string_view name) const {
  if (!given(name)) return std::nullopt;
  return static_cast<at::MemoryFormat>(integer(name));
}

std::optional<at::Generator> Arguments::generator(std::string_view name) const {
  return (*this)[name].toOptional<at::Generator>();
}

std::string Arguments::reduction_text() const {
  bool legacy = signature_.index_of("size_average") != Signature::npos && (given("size_average") || given("reduce"));
  if (!legacy) return text("reduction");
  if (!maybe_flag("reduce").value_or(true)) return "none";
  return maybe_flag("size_average").value_or(true) ? "mean" : "sum";
}

int64_t Arguments::reduction() const {
  std::string name = reduction_text();
  if (name == "none") return at::Reduction::None;
  if (name == "mean") return at::Reduction::Mean;
  TORCH_CHECK(name == "sum", name, " is not a valid value for reduction");
  return at::Reduction::Sum;
}

}  // namespace tilepilot::eval
