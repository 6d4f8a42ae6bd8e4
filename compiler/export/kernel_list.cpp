#include "compiler/export/kernel_list.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "compiler/export/signature.h"
#include "compiler/ir/text/text.h"
#include "compiler/passes/grid_sync.h"
#include "compiler/syntax/parser.h"

namespace tilepilot::exporting {
namespace {

// The outermost function that the place lies in; empty if it lies in none, or in a class.
std::string enclosing_function(const SourceMap& sources, Span span) {
  if (!span.valid() || static_cast<size_t>(span.file) >= sources.size()) return "";
  DiagnosticList ignored;
  const auto tree = syntax::parse(sources, span.file, ignored);
  if (!tree) return "";
  for (const syntax::Stmt& statement : tree->body) {
    const auto* function = std::get_if<syntax::FunctionDef>(&statement.node);
    if (function && statement.span.begin <= span.begin && span.begin < statement.span.end)
      return std::string(function->name.text());
  }
  return "";
}

std::string place_of(const SourceMap& sources, Span span) {
  if (!span.valid() || static_cast<size_t>(span.file) >= sources.size()) return "";
  return fmt::format(", line {} of {}", sources.position(span.file, span.begin).line,
                     std::filesystem::path(sources.name(span.file)).filename().string());
}

}  // namespace

Result<size_t> KernelList::add(const ir::Program& given, const std::string& call, Span launched) {
  // Workspaces of barriers are among those that callers pass.
  const ir::Program program = TRY(passes::grid_sync(given));
  for (size_t k = 0; k < kernels_.size(); ++k)
    if (kernels_[k].program.name == program.name && ir::structurally_equal(kernels_[k].program, program)) return k;
  const Span span = program.span.valid() || program.kernels.empty() ? program.span : program.kernels[0].span;
  const std::string maker = enclosing_function(sources_, span);
  const std::string& shown = maker.empty() ? program.name : maker;
  std::string comment = fmt::format("`{}`{}", call.empty() ? shown : call, place_of(sources_, span));
  if (launched.valid() && static_cast<size_t>(launched.file) < sources_.size())
    comment += fmt::format(", launched in line {}", sources_.position(launched.file, launched.begin).line);
  std::replace(comment.begin(), comment.end(), '\n', ' ');  // it stays one line
  Function function = TRY(function_of(program, names_.of(identifier_part_of(shown), "_workspace_size"), comment));
  kernels_.push_back({program, std::move(function)});
  return kernels_.size() - 1;
}

}  // namespace tilepilot::exporting
