#include "agent/exporter.h"
#include "agent/llm/endpoint/chat.h"
#include "agent/work_folder.h"
#include "tests/golden_diagnostic.h"

namespace tilepilot::agent {
namespace {

class Diagnostics : public testing::DiagnosticTest {
 protected:
  // The error of exporting a model with an exporter that prints `report`.
  void expect_export(const std::string& kind, const std::string& report) {
    auto model = write("model.py", "import torch\n\n\nclass Modell(torch.nn.Module):\n    pass\n");
    ExporterOptions options;
    options.python = script("python", "echo '" + report + "'");
    expect_diagnostic(kind, export_reference(sources_, model, folder_ / "reference", options));
  }
};

TEST_F(Diagnostics, FileNotFound) {
  expect_diagnostic("file_not_found", export_reference(sources_, folder_ / "absent.py", folder_ / "reference", {}));
}

TEST_F(Diagnostics, ModelInvalid) {
  expect_export("model_invalid",
                R"({"ok": false, "error": "no_model", "line": 4, "message": "the file has no class `Model`",)"
                R"( "hint": "name the module to replace `Model`"})");
}

TEST_F(Diagnostics, NotInstalled) {
  expect_export("not_installed",
                R"({"ok": false, "error": "no_torch", "line": 1, "message": "this Python has no PyTorch",)"
                R"( "hint": "install it: `pip install torch`"})");
}

TEST_F(Diagnostics, ExportUnwritable) {
  auto model = write("model.py", "class Model: pass\n");
  ExporterOptions options;
  options.python = script("python", R"(echo '{"ok": false, "error": "cannot_write", "line": 0, )"
                                    R"("message": "`/full` cannot be written: no space left"}')");
  auto exported = export_reference(sources_, model, folder_ / "reference", options);
  ASSERT_FALSE(exported.ok());
  EXPECT_EQ(exported.error().kind, DiagnosticKind::output_unwritable);
  EXPECT_FALSE(exported.error().span.valid());
}

TEST_F(Diagnostics, OutputUnwritable) {
  expect_diagnostic("output_unwritable", WorkFolder::make(write("file", "a file where a folder is wanted")));
}

class RefusingEndpoint : public HttpClient {
 public:
  HttpResponse post(const HttpRequest&) override {
    return {.status = 401, .body = R"({"error": {"message": "Incorrect API key provided"}})"};
  }
};

TEST_F(Diagnostics, AuthorFailed) {
  auto store = RunStore::open(folder_ / "runs.db");
  ASSERT_TRUE(store.ok());
  auto run = (*store)->begin_run({"model.py", "", "llm", "{}"});
  ASSERT_TRUE(run.ok());
  ChatOptions options;
  options.endpoint.url = "http://localhost:1/v1";
  ChatServices services{std::make_unique<RefusingEndpoint>(), [](double) {}, [](const std::string&) {}};
  auto chat = live_chat(options, std::move(services), **store, *run);
  ASSERT_TRUE(chat.ok());
  expect_diagnostic("author_failed", (*chat)->ask({{ChatMessage::Role::user, "hello"}}));
}

}  // namespace
}  // namespace tilepilot::agent
