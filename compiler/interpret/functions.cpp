#include "compiler/interpret/functions.h"

#include <cmath>

namespace tilepilot::interpret {
namespace {

template <class T>
T exp10(T x) {
  return std::pow(T(10), x);
}
template <class T>
T rsqrt(T x) {
  return 1 / std::sqrt(x);
}
template <class T>
T sigmoid(T x) {
  return 1 / (1 + std::exp(-x));
}

#define TP_FUNCTION(name)                                                                \
  Function {                                                                             \
    [](float x) -> float { return name(x); }, [](double x) -> double { return name(x); } \
  }

}  // namespace

const Functions& library_functions() {
  static constexpr Functions table{
      TP_FUNCTION(std::exp),   TP_FUNCTION(std::exp2),  TP_FUNCTION(exp10),      TP_FUNCTION(std::log),
      TP_FUNCTION(std::log2),  TP_FUNCTION(std::log10), TP_FUNCTION(std::log1p), TP_FUNCTION(std::sqrt),
      TP_FUNCTION(rsqrt),      TP_FUNCTION(std::sin),   TP_FUNCTION(std::cos),   TP_FUNCTION(std::tan),
      TP_FUNCTION(std::sinh),  TP_FUNCTION(std::cosh),  TP_FUNCTION(std::tanh),  TP_FUNCTION(std::asin),
      TP_FUNCTION(std::acos),  TP_FUNCTION(std::atan),  TP_FUNCTION(std::asinh), TP_FUNCTION(std::acosh),
      TP_FUNCTION(std::atanh), TP_FUNCTION(std::erf),   TP_FUNCTION(sigmoid),
  };
  return table;
}

#undef TP_FUNCTION

}  // namespace tilepilot::interpret
