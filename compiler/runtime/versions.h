// A program's code for a GPU in several versions: one for usual tensors, and one for each other combination of facts
// that a launch comes with (targets/cuda/tensor_facts.h), made when the first such launch comes.
#pragma once

#include <functional>
#include <map>
#include <utility>

#include "compiler/runtime/arguments.h"
#include "compiler/targets/gpu/facts/tensor_facts.h"

namespace tilepilot::runtime {

template <class Code>
class Versions {
 public:
  using Assemble = std::function<Result<Code>(const ir::Program& program, DiagnosticList& warnings)>;

  Versions(const ir::Program& program, Assemble assemble)
      : program_(program),
        assemble_(std::move(assemble)),
        facts_(program),
        usual_facts_(targets::gpu::usual_facts(program)) {}

  // That for usual tensors, once before all else.
  Status prepare(DiagnosticList& warnings) {
    usual_ = TRY(assemble_(targets::gpu::with_facts(program_, usual_facts_), warnings));
    return {};
  }

  const Code& usual() const { return usual_; }

  // That for a launch with these arguments.
  Result<Code*> of(const BoundArguments& bound) {
    std::vector<targets::gpu::TensorFacts> facts = facts_.find(bound.buffers, bound.values);
    if (facts == usual_facts_) return &usual_;
    if (const auto known = others_.find(facts); known != others_.end()) return &known->second;
    DiagnosticList warnings;  // told before, of the code for usual tensors
    Code code = TRY(assemble_(targets::gpu::with_facts(program_, facts), warnings));
    return &others_.emplace(std::move(facts), std::move(code)).first->second;
  }

 private:
  const ir::Program program_;
  const Assemble assemble_;
  const targets::gpu::FactFinder facts_;
  const std::vector<targets::gpu::TensorFacts> usual_facts_;
  Code usual_;
  std::map<std::vector<targets::gpu::TensorFacts>, Code> others_;
};

}  // namespace tilepilot::runtime
