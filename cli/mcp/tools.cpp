#include "cli/mcp/tools.h"

#include <algorithm>

namespace tilepilot::cli::mcp {
namespace {

constexpr ToolOutput kOk{"ok", "boolean", "whether the command did what was asked"};
constexpr ToolOutput kErrors{"errors", "array",
                             "what was wrong: kind, message, hint, and where it has a place, file, line and column"};
constexpr ToolOutput kRendered{"rendered", "array", "errors as text with carets"};

const std::vector<Tool> kTools = {
    {.name = "generate",
     .title = "Generate a faster program",
     .description =
         "Writes a faster program for a PyTorch model in KernelBench form (class Model, get_inputs, get_init_inputs) "
         "and proves it: one Python file in TileLang syntax with tile kernels and class ModelNew, compiled, checked "
         "against the model on secret inputs and timed against PyTorch eager. Use it when a model is to be made "
         "faster and you do not want to write the kernels yourself, or to get a verified program to start from. It "
         "takes minutes (limit it with `minutes` and `attempts`). Without `output` the program comes back as text; "
         "with it, it is written to that file.",
     .command = {"generate"},
     .files = {{"model", "model"}},
     .options =
         {{"--output",
           "File that the program is written to, replaced if it is there. Default: none, it comes back as text."},
          {"--cert", "File that a certificate of what was proved is written to. Default: none."},
          "--author",
          "--attempts",
          "--variants",
          "--minutes",
          "--force",
          "--no-corpus",
          "--scale",
          "--trials",
          "--aten",
          "--baselines",
          "--target",
          "--dtype",
          "--seed",
          "--threads"},
     .outputs = {kOk,
                 {"output", "string", "the file that was written"},
                 {"program", "string", "the program's text, of a call that names no `output`"},
                 {"speedup", "number", "against PyTorch eager"},
                 {"verdict", "object", "what was proved of the best program, as `check` tells it"},
                 {"attempts", "array", "each candidate's summary and verdict"},
                 {"ending", "string", "why the run ended"},
                 {"reason", "string", "why there is no program"},
                 {"run", "integer", "number of the run in the database: `tilepilot trace RUN` shows it"},
                 kErrors,
                 kRendered},
     .writes = true,
     .open_world = true,
     .time_limit_s = 0},
    {.name = "check",
     .title = "Judge a program against a model",
     .description =
         "Judges a program with class ModelNew against the PyTorch model that it replaces: compiles its kernels, "
         "compares outputs on fresh secret inputs with a float64 run of the model, looks for cheating, and times it "
         "against PyTorch eager. Use it after each change to a program; `no_timing` answers faster while it is not "
         "yet right. With target `emulate:sm_90a` code for a GPU runs without one, and races, missing barriers and "
         "out-of-bounds accesses are found. A program that is not verified is an answer, not an error: `outcome` and "
         "`detail` tell what is wrong, with the program's lines.",
     .command = {"check"},
     .files = {{"program", "candidate"}, {"model", "--reference"}},
     .options = {"--no-timing", "--profile", "--scale", "--trials", "--time-limit", "--aten", "--baselines", "--target",
                 "--dtype", "--seed", "--threads"},
     .always = {"--no-cert"},
     .outputs = {kOk,
                 {"outcome", "string", "`verified`, or what went wrong"},
                 {"detail", "string", "what went wrong, in words"},
                 {"line", "integer", "of the program, where it went wrong; 0: no line is to blame"},
                 {"speedup", "number", "against PyTorch eager; 0: not timed"},
                 {"diagnostics", "array", "the compiler's errors and warnings: kind, message, line, column, hint"},
                 {"rendered", "array", "the same as text with carets"},
                 {"notes", "array", "what else is worth knowing"}}},
    {.name = "compile",
     .title = "Compile a tile program",
     .description =
         "Runs the tile compiler alone on a Python file with TileLang kernels, and tells errors and warnings with "
         "lines, carets and hints. Use it first for a new or changed kernel: it takes a fraction of a second and "
         "needs no PyTorch and no GPU. With `emit` it also returns the tree, IR, layouts or generated source. "
         "`call` builds one kernel with given sizes, as \"matmul(1024, 1024, 1024)\".",
     .command = {"compile"},
     .files = {{"program", "file"}},
     .options = {"--call", "--target", "--emit"},
     .text_with = "emit",
     .outputs = {kOk,
                 {"target", "string", "what it was compiled for"},
                 {"text", "string", "what `emit` asked for"},
                 {"diagnostics", "array", "warnings: kind, message, file, line, column, hint"},
                 kErrors,
                 kRendered}},
    {.name = "explain",
     .title = "Explain the compiler's choices on a GPU",
     .description =
         "Tells what the compiler chose for each statement of a kernel on a GPU (tensor cores, TMA, warp roles, "
         "layouts, swizzles, pipelines) and what kept it from something faster, by line. Use it on a program that is "
         "correct and not fast enough. `target` is a GPU, such as cuda:sm_90a; none has to be here.",
     .command = {"compile"},
     .files = {{"program", "file"}},
     .options = {"--call", "--target"},
     .always = {"--explain"},
     .outputs = {kOk, {"text", "string", "the choices"}, kErrors, kRendered}},
    {.name = "profile",
     .title = "Profile a kernel's call",
     .description =
         "Runs one call and tells where its time goes, by kernel and by operator, against the roofline: whether it "
         "is bound by memory, arithmetic or launches, and where to look. With target `emulate:sm_90a` it counts "
         "instructions, bytes, bank conflicts and sectors by line instead, without a GPU. Use it to decide what to "
         "change next in a correct program.",
     .command = {"profile"},
     .files = {{"program", "file"}},
     .options = {"--call", "--target", "--bench-time", "--threads"},
     .outputs = {kOk,
                 {"profile", "object", "the call's time and its parts"},
                 {"costs", "array", "what launches cost in the emulator"},
                 kErrors,
                 kRendered}},
    {.name = "search_corpus",
     .title = "Search verified programs",
     .description = "Finds verified programs that are near to a model (by its op graph) or to words, and says why. "
                    "Use it before "
                    "you write kernels: an entry's program is in the language as this compiler takes it. "
                    "`show_program` returns one.",
     .command = {"corpus", "search"},
     .files = {{"model", "model"}},
     .options = {"--text", "--count", "--target"},
     .outputs = {kOk, {"hits", "array", "entries, the most useful first, each with a reason"}, kErrors, kRendered}},
    {.name = "show_program",
     .title = "Show a verified program",
     .description =
         "Returns the program of an entry that `search_corpus` found, by its id or name, with the model that it "
         "was written for. Use it as an example of the language, or as a program to start from.",
     .command = {"corpus", "show"},
     .options = {"entry"},
     .outputs = {kOk,
                 {"entry", "object", "the program under `source`, the model under `model_source`, and facts"},
                 kErrors,
                 kRendered}},
    {.name = "show_problem",
     .title = "What is known of a model",
     .description =
         "Tells what is known of a model before a program is written for it: shapes, operators with lines, FLOPs and "
         "bytes, eager's time, the roofline and the headroom, exact algebraic shortcuts, degeneracies, and the "
         "memory "
         "that judging takes. Use it first, to decide whether and what to optimise. `graph_only` runs nothing.",
     .command = {"problem", "show"},
     .files = {{"model", "model"}},
     .options = {"--graph-only", "--scale", "--target", "--dtype", "--threads"},
     .outputs = {kOk,
                 {"inputs", "array", "tensors: name, dtype, shape"},
                 {"outputs", "array", "tensors: name, dtype, shape"},
                 {"operators", "array", "each with its line"},
                 kErrors,
                 kRendered}},
    {.name = "language",
     .title = "The tile language",
     .description =
         "Tells what a construct of the tile language is, from the compiler's own tables: signature, meaning, "
         "parameters that are accepted but ignored; for one that there is not, what to use instead. Without "
         "`construct` it returns the whole card for a target. Use it before you write a kernel, and when an error "
         "names something of `T.`.",
     .command = {"language"},
     .options = {"construct", "--target"},
     .outputs = {kOk, {"text", "string", "the answer"}}},
};

}  // namespace

const std::vector<Tool>& tools() { return kTools; }

const Tool* find_tool(std::string_view name) {
  const auto found = std::find_if(tools().begin(), tools().end(), [&](const Tool& tool) { return tool.name == name; });
  return found == tools().end() ? nullptr : &*found;
}

}  // namespace tilepilot::cli::mcp
