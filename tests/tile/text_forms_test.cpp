// Every program of the repository in every text form that `compile --emit` prints: tokens and tree of each file, and of
// what its factories stage the IR after every pass, which reads back as the same IR.
#include "compiler/diagnostics/render.h"
#include "compiler/driver/emit.h"
#include "compiler/ir/text/text.h"
#include "compiler/passes/pipeline.h"
#include "compiler/syntax/parser.h"
#include "compiler/targets/cpu/codegen.h"
#include "tests/golden.h"

namespace tilepilot::stage {
namespace {

std::vector<std::filesystem::path> program_files() {
  std::vector<std::filesystem::path> files;
  for (const char* folder : {"seeds", "examples", "tests/programs"}) {
    const std::filesystem::path root = std::filesystem::path(TILEPILOT_SOURCE_DIR) / folder;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(root))
      if (entry.path().extension() == ".py" && entry.path().filename() != "model.py" &&
          entry.path().parent_path().filename() != "puzzles")  // whose kernels have gaps
        files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

// Calls of the functions that return a function of their own, every size that has no default being the same;
// `Tuple[int, int]` is a pair of them.
std::vector<std::string> factory_calls(const syntax::Module& module, int size) {
  using Kind = syntax::Parameter::Kind;
  std::vector<std::string> calls;
  for (const syntax::Stmt& statement : module.body) {
    auto* function = std::get_if<syntax::FunctionDef>(&statement.node);
    if (!function) continue;
    const bool makes_one = std::any_of(function->body.begin(), function->body.end(), [](const syntax::Stmt& inner) {
      return std::holds_alternative<syntax::FunctionDef>(inner.node);
    });
    if (!makes_one) continue;
    const std::string one = std::to_string(size), two = "(" + one + ", " + one + ")";
    std::string call;
    for (const syntax::Parameter& parameter : function->parameters) {
      if (parameter.kind != Kind::positional || parameter.default_value) continue;
      const bool pair =
          parameter.annotation && std::holds_alternative<syntax::SubscriptExpr>(parameter.annotation->node);
      call += (call.empty() ? "" : ", ") + (pair ? two : one);
    }
    calls.push_back(function->name.str() + "(" + call + ")");
  }
  return calls;
}

void expect_reads_back(std::string_view pass, const ir::Program& program) {
  SourceMap sources;
  DiagnosticList diagnostics;
  const std::string text = ir::to_text(program);
  auto again = ir::read_text(sources, sources.add("program.tir", text), diagnostics);
  ASSERT_TRUE(again) << "after " << pass << "\n" << render(sources, diagnostics) << text;
  EXPECT_TRUE(ir::structurally_equal(program, *again)) << "after " << pass << "\n" << text;
}

// False if the call stages nothing.
bool check_forms(const driver::CompileRequest& request) {
  SourceMap sources;
  driver::CompileResult staged = driver::compile(sources, request);
  if (staged.diagnostics.has_errors() || staged.programs.empty()) return false;
  for (const ir::Program& program : staged.programs) {
    auto lowered = passes::run_pipeline(program, {.verify_after_each = true, .observer = expect_reads_back});
    EXPECT_TRUE(lowered.ok()) << render(sources, lowered.error());
    if (!lowered.ok()) continue;
    auto source = targets::cpu::generate(*lowered);
    EXPECT_TRUE(source.ok()) << render(sources, source.error());
  }
  return true;
}

class TextForms : public ::testing::TestWithParam<std::filesystem::path> {};

TEST_P(TextForms, OfAFileAndItsPrograms) {
  driver::CompileRequest request;
  request.name = GetParam().filename().string();
  request.text = testing::read_text(GetParam());
  for (const char* form : {"tokens", "tree"}) {
    SourceMap sources;
    driver::Emission emission = driver::emit(sources, request, form);
    ASSERT_TRUE(emission.text) << form << render(sources, emission.diagnostics);
    EXPECT_FALSE(emission.text->empty());
  }
  SourceMap sources;
  DiagnosticList diagnostics;
  auto tree = syntax::parse(sources, sources.add(request.name, request.text), diagnostics);
  ASSERT_TRUE(tree);
  // Where 64 fits one parameter but not the next, as the kernel of a convolution, 1 fits both.
  const std::vector<std::string> calls = factory_calls(*tree, 64), least = factory_calls(*tree, 1);
  for (size_t i = 0; i < calls.size(); ++i) {
    SCOPED_TRACE(calls[i]);
    bool staged = false;
    for (const std::string& call : {calls[i], least[i]}) {
      request.call = call;
      staged = staged || check_forms(request);
    }
    EXPECT_TRUE(staged) << "neither " << calls[i] << " nor " << least[i] << " stages a program";
  }
}

INSTANTIATE_TEST_SUITE_P(Files, TextForms, ::testing::ValuesIn(program_files()), [](const auto& info) {
  std::string name = info.param.parent_path().filename().string() + "_" + info.param.stem().string();
  for (char& letter : name)
    if (!std::isalnum(static_cast<unsigned char>(letter))) letter = '_';
  return name;
});

}  // namespace
}  // namespace tilepilot::stage
