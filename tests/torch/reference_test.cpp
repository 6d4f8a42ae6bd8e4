// The exporter and the loader on good and bad files.
#include "eval/reference.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "eval/argument_json.h"
#include "eval/torch/safetensors.h"
#include "tests/torch/python_runner.h"

namespace tilepilot::eval {
namespace {

using ::testing::HasSubstr;
using testing::run_python;
using testing::scratch;

std::string write_model(const std::filesystem::path& folder, const std::string& text) {
  auto path = folder / "model.py";
  std::ofstream(path) << text;
  return path.string();
}

const std::string kGood = R"(import torch
class Model(torch.nn.Module):
    def forward(self, x):
        return x
def get_inputs():
    return [torch.rand(2)]
def get_init_inputs():
    return []
)";

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  return text.replace(text.find(from), from.size(), to);
}

TEST(Reference, HasWhatTheModelHas) {
  auto reference = load_reference(testing::exported("tests/torch/models/tied.py"));
  ASSERT_TRUE(reference.ok()) << reference.error().message;
  EXPECT_EQ(reference->seed, 42);
  EXPECT_TRUE(reference->training);
  EXPECT_THAT(reference->model_source, HasSubstr("class Model"));
  EXPECT_EQ(reference->forward.inputs.size(), 3u);
  ASSERT_EQ(reference->parameters.size(), 4u);
  EXPECT_EQ(reference->parameters[0].name, "embed.weight");
  EXPECT_EQ(reference->parameters[1].name, "out.weight");
  EXPECT_EQ(reference->parameters[1].tensor, "embed.weight");
  EXPECT_EQ(reference->parameters[0].value >= 0, true);
  EXPECT_EQ(reference->forward.nodes.front().op, "aten::embedding");
  EXPECT_EQ(reference->forward.nodes.front().module, "embed");
  EXPECT_EQ(reference->forward.nodes.front().line, 17);
}

TEST(Reference, TellsTuplesFromListsInInitInputs) {
  auto reference = load_reference(testing::exported("tests/torch/models/tuple_arguments.py"));
  ASSERT_TRUE(reference.ok()) << reference.error().message;
  EXPECT_EQ(to_json(reference->init_inputs).dump(),
            R"([{"tuple":[100]},[3,{"tuple":[5,7]}],{"dict":[["stride",{"tuple":[1,2]}]]}])");
}

TEST(Reference, SaysWhatEagerDoesDifferently) {
  auto fixed = load_reference(testing::exported("tests/torch/models/fixed_inputs.py"));
  ASSERT_EQ(fixed->warnings.size(), 1u);
  EXPECT_THAT(fixed->warnings[0], HasSubstr("its tensors are fixed"));
  auto assigned = load_reference(testing::exported("tests/torch/models/recurrent.py"));
  EXPECT_THAT(assigned->warnings, ::testing::ElementsAre(HasSubstr("`self.last`")));
}

TEST(Reference, ReplacesAnOlderExport) {
  auto folder = scratch("twice");
  auto model = write_model(folder, kGood);
  for (int i = 0; i < 2; ++i) {
    auto run = run_python("scripts/export_reference.py", {model, (folder / "out").string()});
    EXPECT_EQ(run.exit_code, 0) << run.output;
  }
  EXPECT_TRUE(load_reference(folder / "out").ok());
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder), {}), 2);
}

TEST(Reference, fail_KeepsOutOfForeignFolders) {
  auto folder = scratch("foreign");
  auto model = write_model(folder, kGood);
  auto run = run_python("scripts/export_reference.py", {model, folder.string()});
  EXPECT_EQ(run.exit_code, 2);
  EXPECT_THAT(run.output, HasSubstr("exists and is not an exported reference"));
  EXPECT_TRUE(std::filesystem::exists(model));
}

struct BadModel {
  std::string name, text, error, message;
  int line;
};

const BadModel kBadModels[] = {
    BadModel{"syntax", "import torch\nclass Model(:\n", "not_python", "not Python", 2},
    BadModel{"no_model", replaced(kGood, "class Model", "class Other"), "no_model", "`Model`", 0},
    BadModel{"model_is_no_module", replaced(kGood, "(torch.nn.Module)", ""), "no_model", "nn.Module", 0},
    BadModel{"no_get_inputs", replaced(kGood, "def get_inputs", "def inputs"), "no_get_inputs", "`get_inputs`", 0},
    BadModel{"no_get_init_inputs", replaced(kGood, "get_init_inputs", "init"), "no_get_init_inputs",
             "`get_init_inputs`", 0},
    BadModel{"import_raises", "import no_such_module\n" + kGood, "model_raised", "ModuleNotFoundError", 1},
    BadModel{"get_inputs_raises", replaced(kGood, "[torch.rand(2)]", "[1 / 0]"), "model_raised",
             "`get_inputs()` raised `ZeroDivisionError`", 6},
    BadModel{"get_inputs_no_list", replaced(kGood, "[torch.rand(2)]", "torch.rand(2)"), "not_a_list",
             "returns `Tensor`", 5},
    BadModel{"constructor_raises", replaced(kGood, "    return []", "    return [3]"), "model_raised",
             "`Model(*get_init_inputs())` raised `TypeError`", 0},
    BadModel{"forward_raises", replaced(kGood, "return x\n", "return x @ torch.rand(3)\n"), "export_failed", "", 4},
    BadModel{"exits", "import sys\nsys.exit(0)\n", "model_raised", "SystemExit", 2},
    BadModel{"data_dependent", replaced(kGood, "return x\n", "return x if x.sum() > 0 else -x\n"), "data_dependent",
             "depends on tensor values", 4},
    BadModel{"size_from_values", replaced(kGood, "return x\n", "return x[x > 0]\n"), "unsupported_op",
             "the size of what `aten::index` gives depends on tensor values", 4}};

// Python starts once for all of them.
TEST(Reference, fail_BadModelsGetOneClearAnswerAndNoFolder) {
  std::vector<std::string> arguments = {"--answers", TILEPILOT_SOURCE_DIR "/scripts/export_reference.py"};
  std::vector<std::filesystem::path> folders;
  for (const BadModel& bad : kBadModels) {
    folders.push_back(scratch("bad_" + bad.name));
    arguments.insert(arguments.end(), {write_model(folders.back(), bad.text), "fp32", folders.back() / "out"});
  }
  std::istringstream answers(run_python("tests/torch/export_models.py", arguments).output);
  for (size_t k = 0; k < std::size(kBadModels); ++k) {
    const BadModel& bad = kBadModels[k];
    SCOPED_TRACE(bad.name);
    std::string line;
    ASSERT_TRUE(std::getline(answers, line));
    auto answer = nlohmann::json::parse(line, nullptr, false);
    ASSERT_FALSE(answer.is_discarded()) << line;
    EXPECT_EQ(answer.at("code"), 2);
    EXPECT_EQ(answer.at("error"), bad.error);
    EXPECT_THAT(answer.at("message").get<std::string>(), HasSubstr(bad.message));
    EXPECT_EQ(answer.at("line"), bad.line) << line;
    EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folders[k]), {}), 1) << "something was left behind";
  }
}

TEST(Reference, fail_NoSuchFile) {
  auto folder = scratch("none");
  auto run = run_python("scripts/export_reference.py", {(folder / "x.py").string(), (folder / "out").string()});
  EXPECT_EQ(run.exit_code, 2);
  EXPECT_THAT(run.output, HasSubstr("\"no_such_file\""));
  EXPECT_TRUE(std::filesystem::is_empty(folder));
}

// load_reference on damaged files.

std::string load_message(const std::filesystem::path& folder) {
  auto reference = load_reference(folder);
  return reference.ok() ? "" : reference.error().message;
}

void edit(const std::filesystem::path& folder, const std::function<void(nlohmann::json&)>& change) {
  nlohmann::json document = nlohmann::json::parse(std::ifstream(folder / "reference.json"));
  change(document);
  std::ofstream(folder / "reference.json") << document;
}

std::filesystem::path copy_of_export() {
  auto folder = scratch("damaged") / "reference";
  std::filesystem::copy(testing::exported("examples/matmul_bias_relu.py"), folder);
  return folder;
}

TEST(LoadReference, fail_NoFolder) { EXPECT_THAT(load_message("/nowhere"), HasSubstr("cannot be read")); }

TEST(LoadReference, fail_NotJson) {
  auto folder = copy_of_export();
  std::ofstream(folder / "reference.json") << "{\"format\": ";
  EXPECT_THAT(load_message(folder), HasSubstr("damaged"));
}

TEST(LoadReference, fail_OtherVersion) {
  auto folder = copy_of_export();
  edit(folder, [](auto& document) { document["version"] = 9; });
  EXPECT_EQ(load_message(folder), "the exported reference has version 9, this program reads 1");
}

TEST(LoadReference, fail_MissingMember) {
  auto folder = copy_of_export();
  edit(folder, [](auto& document) { document.erase("forward"); });
  EXPECT_THAT(load_message(folder), HasSubstr("forward"));
}

TEST(LoadReference, fail_ValueBeforeItsNode) {
  auto folder = copy_of_export();
  edit(folder, [](auto& document) { document["forward"]["nodes"][0]["args"][0] = {{"value", 999}}; });
  EXPECT_THAT(load_message(folder), HasSubstr("does not exist yet"));
}

TEST(LoadReference, fail_NoWeights) {
  auto folder = copy_of_export();
  std::filesystem::remove(folder / "weights.safetensors");
  EXPECT_THAT(load_message(folder), HasSubstr("weights file is missing"));
}

TEST(Safetensors, fail_Truncated) {
  auto folder = copy_of_export();
  auto path = folder / "weights.safetensors";
  std::filesystem::resize_file(path, std::filesystem::file_size(path) - 8);
  EXPECT_FALSE(load_safetensors(path).ok());
  std::filesystem::resize_file(path, 4);
  EXPECT_FALSE(load_safetensors(path).ok());
  std::ofstream(path) << "not a header at all, but long enough";
  EXPECT_FALSE(load_safetensors(path).ok());
}

}  // namespace
}  // namespace tilepilot::eval
