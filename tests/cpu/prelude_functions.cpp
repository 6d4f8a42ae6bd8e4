#include "prelude_functions.h"

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-function"
#pragma GCC diagnostic ignored "-Wpedantic"
namespace prelude {
#include "compiler/targets/cpu/prelude/types.h.in"
// After the types.
#include "compiler/targets/cpu/prelude/math.h.in"
}  // namespace prelude
#pragma GCC diagnostic pop

namespace tilepilot::testing {

#define TP_FUNCTION(name)                                                                         \
  interpret::Function {                                                                           \
    [](float x) { return prelude::name##_of(x); }, [](double x) { return prelude::name##_of(x); } \
  }

const interpret::Functions& prelude_functions() {
  static constexpr interpret::Functions table{
      TP_FUNCTION(exp),   TP_FUNCTION(exp2),  TP_FUNCTION(exp10),   TP_FUNCTION(log),   TP_FUNCTION(log2),
      TP_FUNCTION(log10), TP_FUNCTION(log1p), TP_FUNCTION(sqrt),    TP_FUNCTION(rsqrt), TP_FUNCTION(sin),
      TP_FUNCTION(cos),   TP_FUNCTION(tan),   TP_FUNCTION(sinh),    TP_FUNCTION(cosh),  TP_FUNCTION(tanh),
      TP_FUNCTION(asin),  TP_FUNCTION(acos),  TP_FUNCTION(atan),    TP_FUNCTION(asinh), TP_FUNCTION(acosh),
      TP_FUNCTION(atanh), TP_FUNCTION(erf),   TP_FUNCTION(sigmoid),
  };
  return table;
}

#undef TP_FUNCTION

}  // namespace tilepilot::testing
