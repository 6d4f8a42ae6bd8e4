#include "tests/layering/layers.h"

namespace tilepilot::layering {

const Rules& project_rules() {
  static const Rules rules{
      {
          // The compiler knows nothing of torch, agents or databases.
          {"compiler/source", {}},
          {"compiler/layout", {}},
          {"compiler/diagnostics", {"compiler/source"}},
          {"compiler/syntax", {"compiler/diagnostics", "compiler/source"}},
          {"compiler/ir", {"compiler/diagnostics", "compiler/source"}},
          {"compiler/interpret", {"compiler/ir", "compiler/diagnostics", "compiler/source"}},
          {"compiler/passes", {"compiler/ir", "compiler/diagnostics", "compiler/source"}},
          {"compiler/untrusted", {"compiler/diagnostics", "compiler/source"}},
          {"compiler/targets/cpu/...", {"compiler/passes", "compiler/ir", "compiler/diagnostics", "compiler/source"}},
          {"compiler/targets/cuda/...",
           {"compiler/targets/cpu", "compiler/layout", "compiler/passes", "compiler/ir", "compiler/diagnostics",
            "compiler/source"}},
          {"compiler/runtime/...",
           {"compiler/targets/cuda", "compiler/targets/cpu", "compiler/passes", "compiler/ir", "compiler/untrusted",
            "compiler/diagnostics", "compiler/source"}},
          {"compiler/emulator/...",
           {"compiler/runtime", "compiler/targets/cuda", "compiler/targets/cpu", "compiler/layout", "compiler/ir",
            "compiler/diagnostics", "compiler/source"}},
          {"compiler/stage/python/...", {"compiler/syntax", "compiler/diagnostics", "compiler/source"}},
          {"compiler/stage/tile/...",
           {"compiler/stage/python", "compiler/syntax", "compiler/runtime", "compiler/targets/cuda", "compiler/ir",
            "compiler/diagnostics", "compiler/source"}},
          // The whole road from a file to a kernel.
          {"compiler/driver",
           {"compiler/stage/tile", "compiler/stage/python", "compiler/runtime", "compiler/targets/cuda",
            "compiler/targets/cpu", "compiler/passes", "compiler/syntax", "compiler/ir", "compiler/diagnostics",
            "compiler/source"}},
          {"retrieval",
           {"compiler/driver", "compiler/stage/tile", "compiler/stage/python", "compiler/syntax", "compiler/ir",
            "compiler/diagnostics", "compiler/source"}},
          // The plain side of eval: what others may see of it.
          {"eval",
           {"compiler/stage/tile", "compiler/stage/python", "compiler/runtime", "compiler/syntax", "compiler/ir",
            "compiler/untrusted", "compiler/diagnostics", "compiler/source"}},
          {"eval/torch",
           {"eval", "compiler/stage/tile", "compiler/stage/python", "compiler/runtime", "compiler/syntax",
            "compiler/ir", "compiler/untrusted", "compiler/diagnostics", "compiler/source"}},
          {"eval/host/...",
           {"eval/torch", "eval", "compiler/stage/tile", "compiler/stage/python", "compiler/runtime", "compiler/syntax",
            "compiler/ir", "compiler/untrusted", "compiler/diagnostics", "compiler/source"}},
          {"eval/worker/...",
           {"eval/host", "eval/torch", "eval", "compiler/stage/tile", "compiler/stage/python", "compiler/runtime",
            "compiler/emulator", "compiler/targets/cuda", "compiler/targets/cpu", "compiler/syntax", "compiler/ir",
            "compiler/untrusted", "compiler/diagnostics", "compiler/source"}},
          {"eval/worker_main",
           {"eval/worker", "eval", "compiler/runtime", "compiler/untrusted", "compiler/diagnostics",
            "compiler/source"}},
          {"agent/...",
           {"retrieval", "eval", "compiler/driver", "compiler/stage/tile", "compiler/stage/python", "compiler/runtime",
            "compiler/targets/cuda", "compiler/syntax", "compiler/ir", "compiler/untrusted", "compiler/diagnostics",
            "compiler/source"}},
          {"kernelbench",
           {"agent", "retrieval", "eval", "compiler/runtime", "compiler/diagnostics", "compiler/source"}},
          {"cli/...",
           {"kernelbench", "agent", "retrieval", "eval", "compiler/driver", "compiler/stage/tile",
            "compiler/stage/python", "compiler/runtime", "compiler/targets/cpu", "compiler/passes", "compiler/syntax",
            "compiler/ir", "compiler/untrusted", "compiler/diagnostics", "compiler/source"}},
      },
      {
          {"torch/", {"eval/torch", "eval/host", "eval/worker", "tests/torch", "tests/bench"}},
          {"ATen/", {"eval/torch", "eval/host", "eval/worker", "tests/torch", "tests/bench"}},
          {"c10/", {"eval/torch", "eval/host", "eval/worker", "tests/torch", "tests/bench"}},
          {"SQLiteCpp/",
           {"retrieval", "agent", "kernelbench", "tests/retrieval", "tests/agent", "tests/cli", "tests/kernelbench"}},
          {"faiss/", {"retrieval"}},
          {"curl/", {"agent/llm/endpoint"}},
          {"CLI/", {"cli"}},
          {"gtest/", {"tests"}},
          {"gmock/", {"tests"}},
      },
  };
  return rules;
}

}  // namespace tilepilot::layering
