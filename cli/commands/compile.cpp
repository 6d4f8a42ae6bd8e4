// tilepilot compile FILE.py: the compiler alone.
#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/command.h"
#include "cli/manual/help.h"
#include "compiler/diagnostics/render.h"
#include "compiler/driver/emit.h"
#include "compiler/runtime/cuda/nvrtc.h"
#include "compiler/source/file.h"

namespace tilepilot::cli {
namespace {

struct CompileFlags {
  std::string file;
  std::string call;
  std::string emit = "source";
  bool explain = false;
  std::string output;
};

// Each file into the folder, which is made if it is not there.
Status write_files(const std::string& folder, const std::vector<std::pair<std::string, std::string>>& files) {
  std::error_code failed;
  std::filesystem::create_directories(folder, failed);
  for (const auto& [name, content] : files) {
    const std::filesystem::path path = std::filesystem::path(folder) / name;
    std::ofstream stream(path, std::ios::binary);
    stream << content;
    stream.close();
    if (stream.fail())
      return make_error(DiagnosticKind::output_unwritable, {}, fmt::format("cannot write `{}`", path.string()));
  }
  return {};
}

int run_compile(Session& session, const CompileFlags& options) {
  driver::CompileRequest request{options.file, "", options.call, "cpu", true};
  std::string why;
  if (!read_file(options.file, request.text, &why))
    return session.fail(
        {DiagnosticKind::file_not_found, {}, fmt::format("cannot read `{}`: {}", options.file, why), {}, ""});
  auto target = session.compile_target();
  if (!target) return session.fail(target.error());
  request.target = *target;
  if (auto status = session.refuse_unused("compile", {"--seed", "--dtype", "--threads"}); !status)
    return session.fail(status.error());
  const std::string what = options.explain ? "explain" : options.emit;
  if (!options.output.empty() && what != "layouts")
    return session.fail({DiagnosticKind::bad_usage,
                         {},
                         "`--output` is for drawings of layouts",
                         {},
                         "add `--emit layouts`, or leave it out"});
  request.cuda_folders = runtime::cuda::default_cuda_folders();
  auto emission = driver::emit(session.sources, request, what);
  if (!emission.text) return session.fail(emission.diagnostics);
  if (!options.output.empty())
    if (auto written = write_files(options.output, emission.files); !written) return session.fail(written.error());
  session.progress_text(render(session.sources, emission.diagnostics, {.color = session.environment.color}));
  session.answer(*emission.text);
  session.finish({{"ok", true},
                  {"emit", what},
                  {"target", request.target},
                  {"text", *emission.text},
                  {"diagnostics", nlohmann::json::parse(render_json(session.sources, emission.diagnostics))}});
  return kDone;
}

}  // namespace

void add_compile(CLI::App& app, Session& session) {
  auto options = std::make_shared<CompileFlags>();
  auto* command = app.add_subcommand("compile", "The compiler alone: show what becomes of a kernel");
  command->add_option("file", options->file, "Python file with tile kernels")->type_name("FILE")->required();
  command->add_option("--call", options->call,
                      "What to build, an expression in the file: \"matmul(1024, 1024, 1024)\"");
  command->add_option("--emit", options->emit, "What to show")
      ->check(named_choices(driver::emission_names()))
      ->capture_default_str();
  command->add_flag("--explain", options->explain,
                    "Show what was chosen for each statement on a GPU, or loop on a processor, and why nothing faster: "
                    "--emit explain");
  command
      ->add_option("--output", options->output,
                   "With --emit layouts: a folder in which each layout is drawn (SVG), too")
      ->type_name("DIR");
  command->footer("Example:\n  tilepilot compile seeds/rms_norm.py --call \"rms_norm(4096, 1024, 1e-6)\" --emit ir");
  command->callback(
      [&session, options] { session.run = [&session, options] { return run_compile(session, *options); }; });
}

}  // namespace tilepilot::cli
