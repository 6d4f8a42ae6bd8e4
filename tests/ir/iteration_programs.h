// Parallel loops whose iterations keep variables, or update elements that others update: programs as texts of the IR,
// for targets to be compared with the interpreter.
#pragma once

#include <fmt/format.h>

#include <cctype>
#include <string>
#include <vector>

namespace tilepilot::ir::testing {

// Loops over x and y, whose iterations set `v`, `w` and the array `t` before they read them.
inline std::vector<std::string> programs_with_variables() {
  const auto program = [](const std::string& loop, const std::string& tiles = "") {
    return fmt::format(R"(program f(x: float32[128], y: float32[128], z: float32[128], n: int32[128]) {{
  kernel bx in 2 threads 64 {{
    local v: float32[1]
    local w: int32[1]
    local t: float32[4]
    {}
    {}
  }}
}})",
                       tiles, loop);
  };
  return {
      program("parallel i in 64 {\nv[0] = x[bx * 64 + i] * 2.0\ny[bx * 64 + i] = v[0]\n"
              "x[bx * 64 + i] = 1.0 / (v[0] * v[0] + 1.0)\n}"),
      program("copy x[bx * 64 : +64] -> a\nparallel i in 64 {\nv[0] = a[i] * 2.0\ny[bx * 64 + i] = v[0]\n"
              "a[i] = 1.0 / (v[0] * v[0] + 1.0)\n}\ncopy a -> x[bx * 64 : +64]",
              "fragment a: float32[64]"),
      program("copy x[bx * 64 : +64] -> a\nparallel i in 64 {\nv[0] = a[i]\nif v[0] < 0.0 {\nv[0] = 0.0 - v[0]\n"
              "}\na[i] = v[0]\nv[0] = v[0] + 1.0\ny[bx * 64 + i] = v[0]\n}\ncopy a -> x[bx * 64 : +64]",
              "shared a: float32[64]"),
      // Fewer iterations than threads, and more.
      program("parallel i in 16 {\nv[0] = x[bx * 64 + i]\nx[bx * 64 + i] = v[0] * v[0]\ny[bx * 64 + i] = v[0]\n}"),
      program("parallel i, j in 4, 16 {\nv[0] = x[bx * 64 + i * 16 + j]\nw[0] = i * 16 + j\n"
              "if w[0] % 3 == 0 {\nv[0] = v[0] + 1.0\nw[0] = 0\n} else {\nw[0] = 1\n}\n"
              "y[bx * 64 + i * 16 + j] = v[0] + float32(w[0])\n}"),
      // Arrays, written by a loop or one by one, and read by an index that memory gives.
      program("parallel i in 64 {\nserial k in 4 {\nt[k] = x[bx * 64 + (i + k) % 64]\n}\n"
              "y[bx * 64 + i] = t[0] + t[3] * t[n[i] & 3]\n}"),
      program("parallel i in 32 {\nserial k in 4 {\nt[k] = x[k * 32 + i]\nif t[k] < 1.0 {\nt[k] = 1.0\n}\n"
              "y[k * 32 + i] = t[k]\n}\n}"),
      // A minimum found by a serial loop inside.
      program("parallel i in 64 {\nv[0] = 100.0\nw[0] = 0\nserial k in 4 {\nif x[(i + k * 5) % 128] < v[0] {\n"
              "v[0] = x[(i + k * 5) % 128]\nw[0] = k\n}\n}\ny[bx * 64 + i] = v[0]\nz[bx * 64 + i] = float32(w[0])\n}"),
      // The same variable in several loops, and in a pipelined loop.
      program("pipelined k in 2 stages 2 {\ncopy x[k * 64 : +64] -> a\nparallel i in 64 {\nv[0] = a[i] + 1.0\n"
              "b[i] = b[i] + v[0] * v[0]\n}\n}\nparallel i in 64 {\nv[0] = b[i]\nz[bx * 64 + i] = v[0]\n}",
              "shared a: float32[64]\nfragment b: float32[64]\nparallel i in 64 {\nb[i] = 0.0\n}"),
  };
}

// Loops whose iterations hand `v` on, or leave it behind: they run in order.
inline std::vector<std::string> programs_with_sequences() {
  const auto program = [](const std::string& loop, const std::string& after = "") {
    return fmt::format(R"(program f(x: float32[64], y: float32[64], z: float32[64]) {{
  kernel bx in 1 threads 64 {{
    local v: float32[1]
    fragment a: float32[64]
    shared s: float32[64]
    copy x -> a
    copy x -> s
    v[0] = 0.5
    parallel i in 64 {{
      {}
    }}
    {}
    copy s -> z
  }}
}})",
                       loop, after);
  };
  return {
      program("v[0] = v[0] + x[i]\ny[i] = v[0]"),
      program("v[0] = v[0] * 0.5 + s[i]\ns[i] = v[0]"),
      program("v[0] = max(v[0], a[i])\na[i] = v[0]", "copy a -> y"),
      program("v[0] = s[i] * 2.0\ns[i] = v[0]", "parallel i in 64 {\ny[i] = v[0]\n}"),
      program("if x[i] < 0.0 {\nv[0] = x[i]\n}\ny[i] = v[0]", "parallel i in 64 {\ns[i] = s[i] + v[0]\n}"),
  };
}

// Updates by several iterations of the elements of a fragment, a shared tile or a tensor: `at` is the index.
inline std::vector<std::string> programs_with_updates() {
  std::vector<std::string> result;
  const auto add = [&](const char* scope, const std::string& body) {
    const bool is_global = std::string(scope) == "global";
    result.push_back(
        fmt::format(R"(program f(x: float32[128], y: float32[64], z: float32[8, 16], n: int32[128], m: int32[64]) {{
  kernel bx in 1 threads 64 {{
    fragment f: float32[8, 16]
    {}
    copy z -> f
    {}
    {}
    {}
  }}
}})",
                    is_global ? "" : fmt::format("{} a: float32[64]\n{} b: int32[64]", scope, scope),
                    is_global ? "" : "copy y -> a\ncopy m -> b", body, is_global ? "" : "copy a -> y\ncopy b -> m"));
    if (!is_global) return;
    // Its own names.
    for (const auto& [from, to] : {std::pair{"a[", "y["}, std::pair{"b[", "m["}})
      for (size_t at = result.back().find(from); at != std::string::npos; at = result.back().find(from, at + 1))
        if (at == 0 || !std::isalnum(static_cast<unsigned char>(result.back()[at - 1])))
          result.back().replace(at, 2, to);
  };
  const char* values[] = {"a[{0}] + x[j]", "a[{0}] - x[j]",       "max(a[{0}], abs(x[j]))", "min(x[j], a[{0}])",
                          "a[{0}] * x[j]", "a[{0}] * 0.5 + x[j]", "max(a[{0}] + x[j], 0.0)"};
  const char* places[] = {"j // 2", "j // 4", "j % 4", "j % 5", "j // 3", "(j * 7) % 64", "63 - j // 2", "0"};
  int number = 0;
  for (const char* value : values)
    for (const char* place : places) {
      const char* scopes[] = {"shared", "fragment", "global"};
      add(scopes[number++ % 3],
          fmt::format("parallel j in 128 {{\na[{}] = {}\n}}", place, fmt::format(fmt::runtime(value), place)));
    }
  for (const char* scope : {"shared", "fragment", "global"}) {
    add(scope, "parallel i, j in 8, 16 {\na[j // 4] = max(a[j // 4], abs(f[i, j]))\n}");
    add(scope, "parallel i, j in 1, 128 {\na[j // 4] = max(a[j // 4], abs(x[j]))\n}");
    // By a named index, by one that hides the loop's variable, by one from memory.
    add(scope, "parallel j in 64 {\nlet k: int32 = j // 4\na[k] = a[k] + x[j]\n}");
    add(scope, "parallel j in 64 {\nlet k: int32 = 63 - j\na[j + k] = a[j + k] * 0.5 + x[j]\n}");
    add(scope, "parallel j in 64 {\na[n[j] & 15] = a[n[j] & 15] + x[j]\n}");
    add(scope, "parallel j in 64 {\na[n[j] & 15] = a[n[j] & 15] * 0.5 + x[j]\n}");
    // In two steps, by way of a name, or a condition; two in one loop; under a serial loop.
    add(scope, "parallel j in 64 {\nlet old: float32 = a[j // 4]\na[j // 4] = old + x[j]\n}");
    add(scope, "parallel j in 64 {\nif a[j // 8] < x[j] {\na[j // 8] = x[j]\n}\n}");
    add(scope, "parallel j in 64 {\na[j // 4] = a[j // 4] + x[j]\na[j // 4] = a[j // 4] + x[j + 64]\n}");
    add(scope, "parallel j in 64 {\na[j // 4] = a[j // 4] + x[j]\na[j // 4] = max(a[j // 4], 0.0)\n}");
    add(scope, "parallel j in 16 {\nserial k in 4 {\na[j + k] = a[j + k] + x[j * 4 + k]\n}\n}");
    add(scope, "parallel j in 64 {\nb[j // 2] = b[j // 2] | n[j]\n}");
    add(scope, "parallel j in 64 {\nb[j // 4] = b[j // 4] ^ n[j]\n}");
    add(scope, "parallel j in 64 {\nb[j % 4] = b[j % 4] & n[j]\n}");
    // Elements that one axis tells apart.
    add(scope, "parallel i, j in 8, 16 {\na[i] = a[i] * 0.5 + x[i * 16 + j]\n}");
    add(scope, "parallel i, j in 8, 16 {\na[i * 8 + j // 2] = a[i * 8 + j // 2] * 0.5 + f[i, j]\n}");
    add(scope, "parallel i, j in 8, 8 {\na[i * 8 + j] = a[i * 8 + j] * 0.5 + x[i * 8 + j]\n}");
  }
  return result;
}

}  // namespace tilepilot::ir::testing
