// tilepilot export FILE -o FOLDER: kernels as a shared library with a C header.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <memory>
#include <nlohmann/json.hpp>

#include "agent/exporter.h"
#include "cli/command.h"
#include "compiler/diagnostics/render.h"
#include "compiler/driver/compile.h"
#include "compiler/export/folder.h"
#include "compiler/export/kernel_list.h"
#include "compiler/export/package.h"
#include "compiler/runtime/kernel_cache.h"
#include "compiler/runtime/process.h"
#include "compiler/runtime/target.h"
#include "compiler/source/file.h"
#include "compiler/syntax/parser.h"

namespace tilepilot::cli {
namespace {

struct ExportFlags {
  std::string file;
  std::string output;
  std::string name;
  std::string reference;
  std::vector<std::string> calls;
};

// The target's own name. Errors: bad_usage.
Result<std::string> exported_target(const Session& session) {
  const runtime::Target target = TRY(runtime::parse_target(session.common.target));
  if (target.place == runtime::Place::emulator)
    return make_error(DiagnosticKind::bad_usage, {}, "a library is for a processor or a GPU, not for the emulator",
                      "choose one: `--target cpu`, `--target cuda:sm_90a`");
  return session.compile_target();
}

// Libraries and headers of C, POSIX and CUDA, in whose place another one would be found.
bool is_of_the_system(const std::string& name) {
  constexpr std::string_view kNames[] = {
      "aio",      "assert",  "c",           "complex", "crypt",     "ctype",   "cuda",      "cudart",    "dirent",
      "dl",       "dlfcn",   "errno",       "fcntl",   "fenv",      "float",   "glob",      "grp",       "iconv",
      "inttypes", "iso646",  "limits",      "locale",  "m",         "malloc",  "math",      "memory",    "netdb",
      "poll",     "pthread", "pwd",         "regex",   "resolv",    "rt",      "sched",     "semaphore", "setjmp",
      "signal",   "spawn",   "stdalign",    "stdarg",  "stdatomic", "stdbool", "stdckdint", "stddef",    "stdint",
      "stdio",    "stdlib",  "stdnoreturn", "string",  "strings",   "syslog",  "tar",       "termios",   "tgmath",
      "threads",  "time",    "torch",       "uchar",   "ulimit",    "unistd",  "util",      "utime",     "wchar",
      "wctype",   "z"};
  return std::find(std::begin(kNames), std::end(kNames), name) != std::end(kNames);
}

Result<std::string> library_name(const ExportFlags& options) {
  const std::string name = options.name.empty()
                               ? exporting::identifier_of(std::filesystem::path(options.file).stem().string())
                               : options.name;
  if (is_of_the_system(name))
    return make_error(DiagnosticKind::bad_usage, {},
                      fmt::format("`{}` is the name of a library or header of the system", name),
                      "give it another one: `--name NAME`");
  if (options.name.empty()) return name;
  if (exporting::is_identifier(options.name) && exporting::identifier_of(options.name) == options.name)
    return options.name;
  return make_error(
      DiagnosticKind::bad_usage, {}, fmt::format("`{}` cannot name a library in C", options.name),
      fmt::format("use letters, digits and underscores: `--name {}`", exporting::identifier_of(options.name)));
}

// Whether the file says by itself what its model is called with.
bool has_model_and_inputs(const std::string& name, const std::string& text) {
  SourceMap sources;
  DiagnosticList ignored;
  const auto tree = syntax::parse(sources, sources.add(name, text), ignored);
  bool has_model = false, has_inputs = false;
  for (size_t k = 0; tree && k < tree->body.size(); ++k) {
    const auto* model = std::get_if<syntax::ClassDef>(&tree->body[k].node);
    const auto* function = std::get_if<syntax::FunctionDef>(&tree->body[k].node);
    has_model = has_model || (model && model->name.text() == "ModelNew");
    has_inputs = has_inputs || (function && function->name.text() == "get_inputs");
  }
  return has_model && has_inputs;
}

// Stages what the calls name, or what the file makes by itself; no tensors are needed.
class StagedExport {
 public:
  StagedExport(Session& session, const ExportFlags& options, exporting::Library library)
      : session_(session), options_(options), library_(std::move(library)) {}

  int run(const std::string& text) {
    exporting::KernelList kernels(session_.sources);
    std::vector<std::string> calls = options_.calls;
    if (calls.empty()) calls.emplace_back();
    for (const std::string& call : calls)
      if (const Status staged = stage(text, call, kernels); !staged) diagnostics_.add(staged.error());
    if (diagnostics_.has_errors()) return session_.fail(diagnostics_);
    library_.kernels = kernels.take();
    if (const Status written = write(); !written) {
      diagnostics_.add(written.error());
      return session_.fail(diagnostics_);
    }
    session_.progress_text(render(session_.sources, diagnostics_, {.color = session_.environment.color}));
    session_.answer(exporting::summary_of(library_, options_.output));
    nlohmann::json answer = exporting::description_of(library_, options_.output);
    answer["diagnostics"] = nlohmann::json::parse(render_json(session_.sources, diagnostics_));
    session_.finish(answer);
    return kDone;
  }

 private:
  Session& session_;
  const ExportFlags& options_;
  exporting::Library library_;
  DiagnosticList diagnostics_;

  Status stage(const std::string& text, const std::string& call, exporting::KernelList& kernels) {
    driver::CompileRequest request{options_.file, text, call, library_.target, true};
    driver::CompileResult staged = driver::compile(session_.sources, request);
    for (const Diagnostic& diagnostic : staged.diagnostics.items()) diagnostics_.add(diagnostic);
    if (staged.diagnostics.has_errors()) return {};
    for (const ir::Program& program : staged.programs) TRY(kernels.add(program, call));
    return {};
  }

  Status write() {
    exporting::PackageOptions options;
    options.toolchain.cache = runtime::default_cache_directory();
    options.nvrtc.cache = runtime::default_cache_directory();
    options.nvrtc.folders = runtime::cuda::default_cuda_folders();
    const auto files = TRY(exporting::package_files(library_, session_.sources, options, diagnostics_));
    return exporting::write_folder(options_.output, files);
  }
};

// The worker runs the model; it needs LibTorch's tensors.
int export_model(Session& session, const ExportFlags& options, const exporting::Library& library) {
  std::unique_ptr<runtime::TemporaryFolder> folder;
  std::string reference;
  if (!options.reference.empty()) {
    auto made = runtime::TemporaryFolder::create(session.work_folder());
    if (!made) return session.fail(made.error());
    folder = *std::move(made);
    session.progress(fmt::format("exporting {}", options.reference));
    agent::ExporterOptions exporter = session.exporter_options();
    exporter.graph_only = true;
    reference = (folder->path() / "reference").string();
    auto exported = agent::export_reference(session.sources, options.reference, reference, exporter);
    if (!exported) return session.fail(exported.error());
  }
  std::vector<std::string> argv = {
      session.environment.worker.string(),   "export",    library.target, library.name, options.output, reference,
      session.common.json ? "json" : "text", options.file};
  argv.insert(argv.end(), options.calls.begin(), options.calls.end());
  const auto ran = runtime::run_process(argv);
  if (!ran) return session.fail(ran.error());
  if (ran->exit_code == 0)
    session.show_diagnostics(ran->err);
  else
    fmt::print(stderr, "{}", ran->err);
  if (ran->exit_code < 0)
    return session.fail({DiagnosticKind::crashed, {}, "the process that ran the model died", {}, ""});
  if (!session.common.json) {
    if (!ran->out.empty()) session.answer(ran->out.substr(0, ran->out.size() - 1));
    return ran->exit_code;
  }
  auto answer = nlohmann::json::parse(ran->out, nullptr, false);
  if (answer.is_object() && !session.common.with_text) answer.erase("text");
  session.finish(answer.is_object() ? answer : nlohmann::json{{"ok", false}});
  return ran->exit_code;
}

int run_export(Session& session, const ExportFlags& options) {
  std::string text, why;
  if (!read_file(options.file, text, &why))
    return session.fail(
        {DiagnosticKind::file_not_found, {}, fmt::format("cannot read `{}`: {}", options.file, why), {}, ""});
  const auto target = exported_target(session);
  if (!target) return session.fail(target.error());
  if (auto status = session.refuse_unused("export", {"--seed", "--threads"}); !status)
    return session.fail(status.error());
  if (options.reference.empty())
    if (auto status = session.refuse_unused("export", {"--dtype"}); !status) return session.fail(status.error());
  if (!session.common.scale.empty() && options.reference.empty())
    return session.fail(
        {DiagnosticKind::bad_usage, {}, "`--scale` is for models", {}, "add `-r MODEL.py`, or leave it out"});
  const auto name = library_name(options);
  if (!name) return session.fail(name.error());
  if (const Status free = exporting::check_folder(options.output, {}); !free) return session.fail(free.error());
  const exporting::Library library{*name, std::filesystem::path(options.file).filename().string(), *target, {}};
  const bool runs_model =
      !options.reference.empty() || (options.calls.empty() && has_model_and_inputs(options.file, text));
  return runs_model ? export_model(session, options, library) : StagedExport(session, options, library).run(text);
}

}  // namespace

void add_export(CLI::App& app, Session& session) {
  auto options = std::make_shared<ExportFlags>();
  auto* command =
      app.add_subcommand("export", "Write kernels as a library with a C header, for programs without Python");
  command->add_option("file", options->file, "Python file with tile kernels, or with class ModelNew")
      ->type_name("FILE")
      ->required();
  command->add_option("-o,--output", options->output, "Folder for the library, its header, its CMake package, examples")
      ->type_name("DIR")
      ->required();
  command
      ->add_option("--call", options->calls,
                   "A kernel to export, an expression in the file: \"matmul(1024, 1024, 1024)\"; may be repeated")
      ->allow_extra_args(false);
  command
      ->add_option("-r,--reference", options->reference,
                   "Python file with class Model, get_inputs() and get_init_inputs(): exports every kernel that "
                   "ModelNew launches for these inputs")
      ->type_name("FILE");
  command->add_option("--name", options->name, "Name of the library and of its functions (default: the file's)");
  add_scale(*command, session);
  command->footer(
      "With neither --call nor -r: the kernels of ModelNew if the file has get_inputs(), else those that the file "
      "makes "
      "by itself.\ndocs/export.md tells what is written, and how it is called. The target `auto` is the processor.\n"
      "Example:\n  tilepilot export seeds/rms_norm.py -o rms_norm --call \"rms_norm(4096, 1024, 1e-6)\"");
  command->callback(
      [&session, options] { session.run = [&session, options] { return run_export(session, *options); }; });
}

}  // namespace tilepilot::cli
