// What the new program keeps of the user's file: `Model.__init__` word for word and everything it needs, so that
// parameters and their names are the same. Forward methods that nothing calls any more are left out, unless they are
// wanted for the mode (training or evaluation) that the kernels are not written for.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "compiler/diagnostics/result.h"

namespace tilepilot::agent::builtin {

struct KeptSource {
  std::vector<std::string> imports;  // one line each, without those the program writer adds
  std::string helpers;               // constants, functions and classes, separated by blank lines; may be empty
  std::string bases = "nn.Module";   // of Model
  std::string members;               // class attributes and methods of Model but `__init__`; may be empty
  std::string init;                  // lines of `__init__`, indented by four
  std::set<std::string> words;       // every identifier in what is kept: names to avoid
};

inline constexpr const char* kForwardAsWritten = "forward_as_written";

// Errors: the text does not parse or has no class Model. With `with_forward`, `forward` is kept too, as
// `forward_as_written`, with all that it needs.
Result<KeptSource> keep_source(const std::string& model_source, const std::string& path, bool with_forward = false);

}  // namespace tilepilot::agent::builtin
