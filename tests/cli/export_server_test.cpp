// Exports by a process that has imported PyTorch already: the same as those that do it themselves.
#include "agent/export_server.h"

#include <signal.h>

#include <fstream>

#include "agent/exporter.h"
#include "tests/cli/command_line.h"
#include "tests/cli/process_tree.h"

namespace tilepilot {
namespace {

namespace fs = std::filesystem;

const char* kModel = R"(import os
import torch
with open(os.path.join(os.path.dirname(__file__), "process"), "w") as file:
    file.write(str(os.getpid()))
FIRST
class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(300, 300)
    def forward(self, x):
        return torch.relu(self.layer(x))
def get_inputs():
    return [torch.rand(2000, 300)]
def get_init_inputs():
    return []
)";

class ExportServerTest : public CommandLine {
 protected:
  // The model, with these lines before its class.
  std::string write(const std::string& first) {
    std::string text = kModel;
    text.replace(text.find("FIRST"), 5, first);
    std::ofstream(folder_ / "model.py") << text;
    return (folder_ / "model.py").string();
  }
  // What an export leaves, or the message of its error.
  std::pair<std::string, std::string> exported(const std::string& model, const std::string& server) {
    SourceMap sources;
    agent::ExporterOptions options;
    options.python = python();
    options.script = script();
    options.server = server;
    const auto folder = folder_ / "reference";
    fs::remove_all(folder);
    auto made = agent::export_reference(sources, model, folder, options);
    if (!made.ok()) return {made.error().message, ""};
    return {content_of(folder / "reference.json"), content_of(folder / "weights.safetensors")};
  }
  std::string name() {
    const std::string variable = server_.variable();
    return variable.substr(variable.find('=') + 1);
  }
  pid_t exporting() const { return std::atoi(content_of(folder_ / "process").c_str()); }
  static std::string python() {
    std::string python;
    std::getline(std::ifstream(TILEPILOT_BINARY_DIR "/python"), python);
    return python;
  }
  static fs::path script() { return fs::path(TILEPILOT_SOURCE_DIR) / "scripts/export_reference.py"; }

  agent::ExportServer server_{python(), script()};
};

TEST_F(ExportServerTest, GivesWhatAnExportAloneGives) {
  const std::string model = write("");
  const auto alone = exported(model, "");
  ASSERT_FALSE(alone.second.empty()) << alone.first;
  const pid_t own = exporting();
  for (int i = 0; i < 2; ++i) {
    const auto by_server = exported(model, name());
    EXPECT_EQ(by_server.first, alone.first);
    EXPECT_TRUE(by_server.second == alone.second);
    EXPECT_NE(exporting(), own);
    EXPECT_FALSE(is_alive(exporting()));
  }
}

TEST_F(ExportServerTest, fail_AsAnExportAloneFails) {
  for (const char* first :
       {"raise ValueError('no luck')", "os._exit(7)", "os.kill(os.getpid(), 11)", "import nowhere", "x = ("}) {
    const std::string model = write(first);
    EXPECT_EQ(exported(model, name()).first, exported(model, "").first) << first;
  }
}

TEST_F(ExportServerTest, AnExportEndsWithItsClient) {
  const std::string model = write("import time\ntime.sleep(600)");
  auto ran = runtime::run_process({"/usr/bin/env", server_.variable(), TILEPILOT_BINARY_DIR "/tilepilot", "problem",
                                   "show", "--target", "cpu", model},
                                  {.time_limit_s = 20});
  ASSERT_TRUE(ran.ok() && ran->timed_out);
  ASSERT_GT(exporting(), 0);
  EXPECT_TRUE(comes_true(10, [&] { return !is_alive(exporting()); }));
}

TEST_F(ExportServerTest, WithoutItExportsRunByThemselves) {
  const std::string model = write("");
  const auto alone = exported(model, "");
  EXPECT_EQ(exported(model, "tilepilot-export-nobody").first, alone.first);
  // What is in the environment is that of the client, unless it would come too late.
  const std::string here = name();
  const auto is_forked = [&](const char* variable) {
    EXPECT_EQ(setenv(variable, "300", 1), 0);
    const std::string first = std::string("assert os.environ['") + variable + "'] == '300'\n" +
                              "file = open(os.path.join(os.path.dirname(__file__), 'parent'), 'w')\n" +
                              "file.write(open(f'/proc/{os.getppid()}/cmdline').read())\nfile.close()";
    EXPECT_EQ(exported(write(first), here).second, alone.second) << variable;
    unsetenv(variable);
    return content_of(folder_ / "parent").find("--serve") != std::string::npos;
  };
  EXPECT_TRUE(is_forked("MODEL_WIDTH"));
  EXPECT_FALSE(is_forked("PYTHONHASHSEED"));
  // The server is gone in the middle of an export.
  const std::string kill =
      "import signal\nif open(f'/proc/{os.getppid()}/cmdline').read().find('--serve') > 0:\n"
      "    os.kill(os.getppid(), signal.SIGKILL)\n";
  EXPECT_EQ(exported(write(kill), here).second, alone.second);
}

}  // namespace
}  // namespace tilepilot
