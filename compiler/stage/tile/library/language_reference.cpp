#include "compiler/stage/tile/library/language_reference.h"

#include <fmt/format.h>

#include <algorithm>

#include "compiler/stage/tile/library/dtypes.h"
#include "compiler/stage/tile/operators/tables.h"

namespace tilepilot::stage {
namespace {

constexpr std::string_view kHead =
    "# The tile language\n\n"
    "What programs may use of `tilelang` and `tilelang.language` (`T`), by concept. This file is written from the\n"
    "compiler's own tables (`TILEPILOT_UPDATE_GOLDEN=1 build/tests/test_tile`): a name that is not here is an error "
    "that\n"
    "says so. Parameters that end in `=` are optional; after `*` they are named.\n\n"
    "Programs come in the forms of TileLang 0.1.13 and of the versions before it: `@T.prim_func` alone, factories "
    "under\n"
    "`@tilelang.jit`, `@tilelang.jit` directly on `@T.prim_func`, and eager `@tilelang.jit` functions with `T.const` "
    "and\n"
    "`T.empty`. On the CPU a block of a launch runs on one thread of the machine; what its threads do between "
    "barriers\n"
    "becomes loops. Integers of 8 and 16 bits are computed with in 32 until they are stored, named or converted, as in "
    "C.\n";

// Where this compiler differs from upstream on purpose.
constexpr std::pair<std::string_view, std::string_view> kDifferences[] = {
    {"`@tilelang.jit` on `@T.prim_func`", "accepted, as before version 0.1.6"},
    {"`T.copy` of two whole buffers", "extents of 1 do not count: `A[64]` to `B[1, 64]` is a copy"},
    {"a constant slice that leaves a tile",
     "an error; of a global tensor, elements outside read as 0 and are not written"},
    {"an index that leaves a tile at run time",
     "on the CPU ends the launch with its line, in the emulator too; a GPU does not look"},
    {"`T.alloc_var` inside `T.Parallel`", "each iteration has one of its own"},
    {"a value that leaves its loop or branch", "an error with the place where it was computed"},
    {"barriers and tile operators under conditions",
     "conditions on the thread index alone divide a block into roles; "
     "others must hold for all threads"},
    {"layouts of global tensors",
     "not used, which is announced: elements lie in the order of the shape, in every kernel"},
    {"conversions to types of 4 and 8 bits", "saturate, also from infinity"},
    {"elements of 4 bits",
     "the last axis of tensors and views has an even extent; results of gemms, reductions and atomics are wider"},
    {"hints and parameters that no target heeds", "accepted and announced as `ignored_request`"},
    {"bulk copies and asynchronous gemms on the CPU", "done at once; barriers count as on the GPU"},
    {"masks of shuffles and votes", "not used: all threads of the warp that come there take part"},
    {"foreign device source on the CPU", "staged, refused when compiled"},
    {"barriers of a grid on the CPU",
     "the kernel ends there and another one begins: only global memory outlives them, and they stand in no loop"},
    {"missing barriers",
     "put in where threads exchange elements of shared memory, also under conditions that differ between threads; not "
     "in kernels with hardware barriers or roles"},
    {"fragments that threads address by element",
     "an array of each thread's own if threads store different values; one store of the block if all store the same"},
};

std::string cell(std::string_view text) {
  std::string result;
  for (const char letter : text) result += letter == '|' ? std::string("\\|") : std::string(1, letter);
  return result;
}

// The parameters as people write them, and which of them nothing heeds.
std::string signature(const TileFunction& row, std::vector<std::string>& dropped) {
  const TileSignature signature(row.parameters);
  for (const TileSignature::Parameter& parameter : signature.parameters())
    if (parameter.dropped) dropped.emplace_back(parameter.name);
  return fmt::format("T.{}({})", row.name, signature.text());
}

void add_section(std::string& out, const LanguageSection& section) {
  out += fmt::format("\n## {}\n\n| | |\n|---|---|\n", section.title);
  for (const TileFunction& row : section.table()) {
    std::vector<std::string> dropped;
    std::string line = fmt::format("| `{}` | {}", cell(signature(row, dropped)), cell(row.summary));
    if (row.effect == Effect::hint) line += "; announced, otherwise ignored";
    if (!dropped.empty()) line += fmt::format("; accepted but ignored: `{}`", fmt::join(dropped, "`, `"));
    out += line + " |\n";
  }
}

std::string in_code(std::string_view words) {
  std::string result = "`";
  for (const char letter : words) result += letter == ' ' ? std::string("`, `") : std::string(1, letter);
  return result + "`";
}

}  // namespace

std::string language_reference() {
  std::string out(kHead);
  for (const LanguageSection& section : language_sections()) add_section(out, section);
  out += "\n## Element types\n\nEach is a dtype, a cast when called, and an annotation of scalar parameters: ";
  std::string separator;
  for (const NamedDType& row : dtype_names()) {
    out += fmt::format("{}`T.{}`", separator, row.name);
    separator = ", ";
  }
  out += ".\n\n## Other names\n\n| | |\n|---|---|\n";
  for (const TileName& row : other_names()) out += fmt::format("| `T.{}` | {} |\n", row.name, cell(row.summary));
  out += "\n## Differences from upstream\n\n| | |\n|---|---|\n";
  for (const auto& [what, how] : kDifferences) out += fmt::format("| {} | {} |\n", what, how);
  out += "\n## Not supported\n\nUsing one of these is an error that names it.\n\n| | instead |\n|---|---|\n";
  for (const UnsupportedNames& group : unsupported_names())
    out += fmt::format("| {} | {} |\n", in_code(group.names), cell(group.advice));
  return out;
}

}  // namespace tilepilot::stage
