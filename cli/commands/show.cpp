// tilepilot show FILE: pictures of what the compiler made of a kernel.
#include <fmt/format.h>

#include <fmt/ranges.h>
#include <algorithm>
#include <cerrno>

#include <cstdlib>
#include <filesystem>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/command.h"
#include "cli/manual/help.h"
#include "compiler/diagnostics/render.h"
#include "compiler/driver/compile.h"
#include "compiler/runtime/process.h"
#include "compiler/runtime/target.h"
#include "compiler/source/file.h"
#include "eval/graph/roofline.h"
#include "show/page.h"
#include "show/show.h"

namespace tilepilot::cli {
namespace {

constexpr double kBenchTime = 500;  // of `--measure`, milliseconds

struct ShowFlags {
  std::string file, call, kernel, output, svg;
  std::vector<std::string> set;
  int64_t block = 0;
  double from = 0;
  bool measure = false, no_run = false;
};

Result<std::map<std::string, int64_t>> extents_of(const std::vector<std::string>& given) {
  std::map<std::string, int64_t> extents;
  for (const std::string& one : given) {
    const size_t equals = one.find('=');
    char* end = nullptr;
    errno = 0;
    const int64_t value = equals == std::string::npos ? 0 : std::strtoll(one.c_str() + equals + 1, &end, 10);
    if (equals == 0 || end == nullptr || errno == ERANGE || *end != '\0' || end == one.c_str() + equals + 1 ||
        value < 0)
      return make_error(DiagnosticKind::bad_usage, {}, fmt::format("`{}` names no extent", one),
                        "write `--set m=1024`");
    extents[one.substr(0, equals)] = value;
  }
  return extents;
}

// A name that the program does not have; "": there is none.
std::string unknown_extent(const ir::Program& program, const std::map<std::string, int64_t>& extents) {
  for (const auto& [name, value] : extents) {
    const auto is_named = [&, name = name](const ir::Var& var) { return var->name == name; };
    const bool known = std::any_of(program.symbols.begin(), program.symbols.end(), is_named) ||
                       std::any_of(program.parameters.begin(), program.parameters.end(), [&](const auto& parameter) {
                         const auto* number = std::get_if<ir::Var>(&parameter);
                         return number != nullptr && is_named(*number);
                       });
    if (!known) return name;
  }
  return "";
}

Result<ir::Program> chosen(const std::vector<ir::Program>& programs, const std::string& wanted) {
  std::vector<std::string> names;
  for (const ir::Program& program : programs) names.push_back(program.name);
  if (wanted.empty() && programs.size() == 1) return programs.front();
  for (const ir::Program& program : programs)
    if (program.name == wanted) return program;
  if (wanted.empty())
    return make_error(DiagnosticKind::bad_usage, {},
                      fmt::format("the file has {} kernels: `{}`", names.size(), fmt::join(names, "`, `")),
                      fmt::format("choose one: `--kernel {}`", names.front()));
  return make_error(DiagnosticKind::bad_usage, {}, fmt::format("no kernel is called `{}`", wanted),
                    fmt::format("there is `{}`", fmt::join(names, "`, `")));
}

// Times of the program's kernels, by `profile` in the worker.
Status measure(const Session& session, const ShowFlags& options, const std::string& target, show::Picture& picture) {
  const auto ran = TRY(runtime::run_process({session.environment.worker.string(), "profile", target,
                                             fmt::format("{}", kBenchTime), options.file, options.call, "json"},
                                            {.time_limit_s = 300}));
  const auto answer = nlohmann::json::parse(ran.out, nullptr, false);
  if (ran.exit_code != 0 || answer.is_discarded() || !answer.contains("profile"))
    return make_error(
        ran.exit_code == kMissing ? DiagnosticKind::driver_missing : DiagnosticKind::bad_usage, {},
        "the kernel could not be measured",
        fmt::format("`tilepilot profile {} --call \"{}\" --target {}` says why", options.file, options.call, target));
  const nlohmann::json& profile = answer["profile"];
  for (const nlohmann::json& kernel : profile.value("kernels", nlohmann::json::array())) {
    const auto number = kernel.value("number", size_t{0});
    if (number >= picture.kernels.size() || !picture.kernels[number].roofline) continue;
    show::RooflinePicture& roofline = *picture.kernels[number].roofline;
    roofline.seconds = kernel.value("time", nlohmann::json::object()).value("median_us", 0.0) * 1e-6;
    roofline.time_from = fmt::format("measured on {}, the median of its launches",
                                     profile.value("machine", nlohmann::json::object()).value("name", target));
    roofline.bound.clear();
  }
  return {};
}

// What is drawn for `--target`: an emulated GPU, unless another one is named.
Result<std::string> target_of(const Session& session) {
  const std::string& given = session.common.target;
  if (given == "auto") return std::string("emulate:sm_90a");
  return runtime::to_string(TRY(runtime::parse_target(given)));
}

show::ProcessorRates processor_rates(const Session& session) {
  const eval::MachineRates rates = eval::rates_of_processor(session.common.threads, session.environment.cache);
  return {rates.name, rates.bytes_per_s, rates.product_flops, rates.vector_flops};
}

std::string summary_of(const show::KernelPicture& kernel) {
  std::string text = fmt::format("{}: tiles in registers {}, in shared memory {}", kernel.name, kernel.registers.size(),
                                 kernel.shared.size());
  int64_t conflicts = 0;
  for (const show::SharedPicture& tile : kernel.shared)
    for (const show::SharedAccess& access : tile.accesses) conflicts += access.conflicts;
  if (kernel.timeline)
    text += fmt::format(", {} wavefronts for bank conflicts; a block takes {:.0f} cycles of the model", conflicts,
                        kernel.timeline->cycles);
  else
    text += "; no timeline: " + kernel.no_timeline;
  for (const std::string& defect : kernel.defects) text += "\nthe emulator found: " + defect;
  return text;
}

class ShowRun {
 public:
  ShowRun(Session& session, const ShowFlags& options) : session_(session), options_(options) {}

  int run() {
    if (auto status = session_.refuse_unused("show", {"--seed", "--dtype"}); !status)
      return session_.fail(status.error());
    if (options_.measure && options_.call.empty())
      return session_.fail({DiagnosticKind::bad_usage, {}, "`--measure` needs `--call`", {}, ""});
    auto target = target_of(session_);
    if (!target) return session_.fail(target.error());
    if (options_.measure && target->starts_with("emulate"))
      return session_.fail({DiagnosticKind::bad_usage,
                            {},
                            "the emulator measures no time",
                            {},
                            "name a target that runs here: `--target cpu`"});
    if (const std::string why = why_unwritable(options_.output); !options_.output.empty() && !why.empty())
      return session_.fail(
          {DiagnosticKind::output_unwritable, {}, fmt::format("cannot write `{}`: {}", options_.output, why), {}, ""});
    std::error_code apart;
    if (std::filesystem::equivalent(options_.output, options_.file, apart))
      return session_.fail(
          {DiagnosticKind::output_unwritable, {}, "the page would replace the program", {}, "name another file"});
    auto extents = extents_of(options_.set);
    if (!extents) return session_.fail(extents.error());
    driver::CompileRequest request{options_.file, "", options_.call, *target, true};
    if (const size_t colon = target->find(':'); colon != std::string::npos)
      request.target = "cuda" + target->substr(colon);
    std::string why;
    if (!read_file(options_.file, request.text, &why))
      return session_.fail(
          {DiagnosticKind::file_not_found, {}, fmt::format("cannot read `{}`: {}", options_.file, why), {}, ""});
    driver::CompileResult compiled = driver::compile(session_.sources, request);
    if (compiled.diagnostics.has_errors()) return session_.fail(compiled.diagnostics);
    session_.progress_text(render(session_.sources, compiled.diagnostics, {.color = session_.environment.color}));
    auto program = chosen(compiled.programs, options_.kernel);
    if (!program) return session_.fail(program.error());
    if (const std::string unknown = unknown_extent(*program, *extents); !unknown.empty())
      return session_.fail(
          {DiagnosticKind::bad_usage,
           {},
           fmt::format("`{}` has no extent or number `{}` that is known at launch alone", program->name, unknown),
           {},
           ""});
    show::ShowOptions how{
        options_.file, options_.call, *target, options_.block, options_.from, !options_.no_run, *extents, {}, {}};
    how.toolchain.cache = session_.environment.cache;
    if (*target == "cpu") how.processor = processor_rates(session_);
    auto kernels = show::picture_of(*program, session_.sources, how);
    if (!kernels) return session_.fail(kernels.error());
    show::Picture picture{options_.file, options_.call, *target, request.text, std::move(*kernels)};
    if (options_.measure)
      if (auto measured = measure(session_, options_, *target, picture); !measured)
        return session_.fail(measured.error());
    return write(picture);
  }

 private:
  Session& session_;
  const ShowFlags& options_;

  int write(const show::Picture& picture) {
    std::vector<std::string> written;
    const auto put = [&](const std::filesystem::path& path, const std::string& content) -> Status {
      if (std::string why; !write_file(path, content, &why))
        return make_error(DiagnosticKind::output_unwritable, {},
                          fmt::format("cannot write `{}`: {}", path.string(), why));
      written.push_back(path.string());
      return {};
    };
    const bool wants_page = !options_.output.empty() || (options_.svg.empty() && !session_.common.json);
    if (wants_page) {
      const std::string path =
          options_.output.empty() ? std::filesystem::path(options_.file).stem().string() + ".html" : options_.output;
      if (auto status = put(path, show::page(picture)); !status) return session_.fail(status.error());
    }
    if (!options_.svg.empty()) {
      std::error_code failed;
      std::filesystem::create_directories(options_.svg, failed);
      for (const auto& [name, content] : show::svg_files(picture))
        if (auto status = put(std::filesystem::path(options_.svg) / name, content); !status)
          return session_.fail(status.error());
    }
    for (const show::KernelPicture& kernel : picture.kernels) session_.answer(summary_of(kernel));
    for (const std::string& path : written) session_.answer("written: " + path);
    session_.finish({{"ok", true}, {"written", written}, {"picture", to_json(picture)}});
    return kDone;
  }
};

}  // namespace

void add_show(CLI::App& app, Session& session) {
  auto options = std::make_shared<ShowFlags>();
  auto* command = app.add_subcommand("show", "Draw what the compiler made of a kernel");
  command->add_option("file", options->file, "Python file with tile kernels")->type_name("FILE")->required();
  command->add_option("--call", options->call,
                      "What to build, an expression in the file: \"matmul(1024, 1024, 1024)\"");
  command->add_option("--kernel", options->kernel, "Which one, where the file or the call gives several");
  command
      ->add_option("--output,-o", options->output,
                   "The page (default: the file's name with .html, in this folder; with --svg or --json none)")
      ->type_name("FILE");
  command->add_option("--svg", options->svg, "A folder in which each drawing is a file of its own, too")
      ->type_name("DIR");
  command->add_option("--block", options->block, "The block whose timeline is drawn; of clusters, the cluster")
      ->check(CLI::Range(int64_t{0}, int64_t{1} << 40))
      ->capture_default_str();
  command->add_option("--from", options->from, "The cycle at which the drawing of the timeline begins")
      ->check(number_within(0, 1e15))
      ->capture_default_str();
  command->add_option("--set", options->set, "An extent or a number that is known at launch alone: m=1024");
  command->add_flag("--no-run", options->no_run, "Run nothing in the emulator: no timeline, no bank conflicts");
  command->add_flag("--measure", options->measure,
                    "Measure the kernel where the target is this processor or GPU, for the roofline's dot");
  command->footer(
      "Draws which thread holds what, shared memory with its swizzle and bank conflicts, the timeline of a block, and "
      "the\n"
      "roofline (docs/show.md). The target is emulate:sm_90a unless another one is named.\n"
      "Example:\n"
      "  tilepilot show examples/scripts/matmul.py --call \"matmul(512, 512, 512)\" -o matmul.html");
  command->callback(
      [&session, options] { session.run = [&session, options] { return ShowRun(session, *options).run(); }; });
}

}  // namespace tilepilot::cli
