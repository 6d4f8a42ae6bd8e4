// The exporter and the loader on good and bad files.
#include "eval/graph/reference.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "eval/graph/argument_json.h"
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

// As in a cell that is called for one step after another.
TEST(Reference, HasBuffersForWhatForwardKeepsInAttributes) {
  auto reference = load_reference(testing::exported("tests/attacks/models/hidden_in_an_attribute.py"));
  ASSERT_TRUE(reference.ok()) << reference.error().message;
  EXPECT_THAT(reference->warnings, ::testing::ElementsAre(HasSubstr("`self.hidden`, which its next call reads")));
  ASSERT_EQ(reference->parameters.size(), 3u);
  const ParameterInfo& hidden = reference->parameters[0];
  EXPECT_EQ(hidden.name, "hidden");
  EXPECT_TRUE(hidden.is_buffer && hidden.is_attribute);
  EXPECT_FALSE(reference->parameters[1].is_attribute);
  const GraphNode& last = reference->forward.nodes.back();
  EXPECT_EQ(last.op, "aten::copy_");
  EXPECT_EQ(*last.args[0].value_id(), hidden.value);
}

TEST(Reference, TellsWhereTheGraphHoldsNumbersOfTheInputs) {
  auto reference = load_reference(testing::exported("tests/torch/models/numbers.py"));
  ASSERT_TRUE(reference.ok()) << reference.error().message;
  EXPECT_THAT(reference->warnings, ::testing::ElementsAre(HasSubstr("inputs 0 and 1 share memory")));
  ASSERT_EQ(reference->numbers.size(), 2u);
  EXPECT_EQ(reference->numbers[0].input, 2u);
  EXPECT_EQ(reference->numbers[1].input, 3u);
  auto& place = reference->numbers[1].places.at(0);
  EXPECT_EQ(reference->forward.nodes[place.node].op, "aten::roll");
  EXPECT_THAT(place.path, ::testing::ElementsAre(1u, 0u));
}

// A flag that decides sizes is none of them; one that chooses a layer, and the number of steps, are.
TEST(Reference, HoldsTheGraphsOfOtherFlags) {
  EXPECT_TRUE(load_reference(testing::exported("tests/torch/models/numbers.py"))->variants.empty());
  auto reference = load_reference(testing::exported("tests/torch/models/flags.py"));
  ASSERT_TRUE(reference.ok()) << reference.error().message;
  ASSERT_EQ(reference->variants.size(), 3u);
  EXPECT_EQ(reference->variants[0].input, 1u);
  EXPECT_TRUE(std::get<bool>(reference->variants[0].value.data));
  EXPECT_NE(reference->variants[0].forward->nodes.size(), reference->forward.nodes.size());
  EXPECT_EQ(std::get<int64_t>(reference->variants[1].value.data), 3);
  EXPECT_FALSE(reference->variants[2].forward) << "nothing depends on it";
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
  int code = 2;
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
    BadModel{"bins", replaced(kGood, "return x\n", "return torch.bincount(x.long())\n"), "unsupported_op",
             "the size of what `aten::bincount` gives depends on tensor values", 4},
    BadModel{"size_from_values", replaced(kGood, "return x\n", "return x[x > 0]\n"), "unsupported_op",
             "the size of what `aten::index` gives depends on tensor values", 4},
    BadModel{"no_tensors", replaced(kGood, "[torch.rand(2)]", "[3.0]"), "no_tensors", "returns no tensor", 0},
    BadModel{"complex_input", replaced(kGood, "torch.rand(2)", "torch.rand(2, dtype=torch.complex64)"),
             "unsupported_input", "input 0 is complex64", 0},
    BadModel{"complex_output", replaced(kGood, "return x\n", "return torch.fft.fft(x)\n"), "unsupported_input",
             "output 0 is complex64", 0},
    BadModel{"sparse_input", replaced(kGood, "torch.rand(2)", "torch.eye(2).to_sparse()"), "unsupported_input",
             "layout `sparse_coo`", 0},
    BadModel{"meta_input", replaced(kGood, "torch.rand(2)", "torch.rand(2, device='meta')"), "unsupported_input",
             "on the device `meta`", 0},
    BadModel{"returns_nothing", replaced(kGood, "return x\n", "x + 1\n"), "no_outputs", "returns no tensor", 0},
    BadModel{"shapes_vary",
             "import random\n" + replaced(kGood, "torch.rand(2)", "torch.rand(random.randint(2, 10**6))"),
             "inputs_vary", "other shapes or types from call to call", 0},
    BadModel{"counts_in_an_attribute", replaced(kGood, "return x\n", R"(
        self.calls = getattr(self, "calls", 0) + 1
        return x / self.calls
)"),
             "keeps_state", "changes `self.calls`, which is no buffer", 0},
    BadModel{"keeps_a_tensor", replaced(kGood, "return x\n", R"(
        last, self.last = getattr(self, "last", None), x
        return x if last is None else x + last
)"),
             "keeps_state", "changes `self.last`, which is no buffer", 0},
    BadModel{"weights_too_large", replaced(kGood, "def forward", R"(def __init__(self):
        super().__init__()
        self.layers = torch.nn.ModuleList(torch.nn.Linear(2**17, 2**17) for _ in range(16))
    def forward)"),
             "too_large", "the model's weights take 1099.5 GB", 0, 3}};

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
    EXPECT_EQ(answer.at("code"), bad.code);
    EXPECT_EQ(answer.at("error"), bad.error);
    EXPECT_THAT(answer.at("message").get<std::string>(), HasSubstr(bad.message));
    EXPECT_EQ(answer.at("line"), bad.line) << line;
    EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folders[k]), {}), 1) << "something was left behind";
  }
}

// What `get_inputs` and `forward` may give.

struct OddModel {
  std::string name, text;
  size_t tensors, outputs;  // of forward
};

const OddModel kOddModels[] = {
    {"returns_its_input", kGood, 1, 1},
    {"returns_a_dict", replaced(kGood, "return x\n", "return {'a': x + 1, 'b': [x * 2, None]}\n"), 1, 2},
    {"takes_containers",
     replaced(replaced(kGood, "x):\n        return x", "x, y):\n        return x['a'] + y[0][1]"), "[torch.rand(2)]",
              "[{'a': torch.rand(2)}, [[torch.rand(2), torch.rand(2)]]]"),
     3, 1},
    {"has_no_elements", replaced(kGood, "torch.rand(2)", "torch.rand(0, 3)"), 1, 1},
    {"has_no_dimensions", replaced(kGood, "torch.rand(2)", "torch.rand(())"), 1, 1},
    {"shares_memory", replaced(kGood, "    return [torch.rand(2)]", "    x = torch.rand(2)\n    return [x.view(1, 2)]"),
     1, 1}};

TEST(Reference, HoldsOddModels) {
  std::vector<std::string> arguments = {"--answers", TILEPILOT_SOURCE_DIR "/scripts/export_reference.py"};
  std::vector<std::filesystem::path> folders;
  for (const OddModel& odd : kOddModels) {
    folders.push_back(scratch("odd_" + odd.name));
    arguments.insert(arguments.end(), {write_model(folders.back(), odd.text), "model", folders.back() / "out"});
  }
  auto run = run_python("tests/torch/export_models.py", arguments);
  for (size_t k = 0; k < std::size(kOddModels); ++k) {
    SCOPED_TRACE(kOddModels[k].name + ": " + run.output);
    auto reference = load_reference(folders[k] / "out");
    ASSERT_TRUE(reference.ok()) << reference.error().message;
    EXPECT_EQ(reference->forward.inputs.size(), kOddModels[k].tensors);
    size_t outputs = 0;
    for_each_value(reference->forward.outputs, [&](int) { ++outputs; });
    EXPECT_EQ(outputs, kOddModels[k].outputs);
  }
}

// `--scale`.

const std::string kSized = R"(import torch
batch, width = 256, 4096
hidden = [8192, 16]
patch = 16
height = side = 224
class Model(torch.nn.Module):
    def __init__(self, width, hidden, patch):
        super().__init__()
        assert side % patch == 0
        self.layer = torch.nn.Linear(width, hidden[0])
        self.norm = torch.nn.GroupNorm(64, hidden[0])
        self.groups = torch.nn.Conv2d(64, 64, 3, groups=hidden[1])
    def forward(self, x, image):
        return self.norm(self.layer(x)), self.groups(image)
def get_inputs():
    return [torch.rand(batch, width), torch.rand(1, 64, height, side)]
def get_init_inputs():
    return [width, hidden, patch]
)";

TEST(Reference, ShrinksSizesByTheRule) {
  auto folder = scratch("scaled"), other = scratch("unscaled");
  auto run =
      run_python("tests/torch/export_models.py",
                 {"--scaled", "1/4", TILEPILOT_SOURCE_DIR "/scripts/export_reference.py", write_model(folder, kSized),
                  "model", folder / "out", write_model(other, kGood), "model", other / "out"});
  auto reference = load_reference(folder / "out");
  ASSERT_TRUE(reference.ok()) << run.output;
  auto shape = [&](size_t input) {
    return reference->forward.values[static_cast<size_t>(reference->forward.inputs[input])].shape;
  };
  EXPECT_THAT(shape(0), ::testing::ElementsAre(64, 1024));
  // The 64 channels are the constructor's as well, where no name is shared; 56 is not divisible by the patch.
  EXPECT_THAT(shape(1), ::testing::ElementsAre(1, 64, 64, 64));
  EXPECT_EQ(reference->scale, "1/4");
  EXPECT_THAT(reference->model_source, HasSubstr("hidden = [2048, 16]\npatch = 16\nheight = side = 64\n"));
  EXPECT_THAT(reference->warnings, ::testing::Contains(HasSubstr("at scale 1/4: batch 256 -> 64, width 4096 -> 1024")));
  EXPECT_THAT(run.output, HasSubstr("no size of this model can be made smaller"));
}

TEST(Reference, fail_NoScale) {
  auto folder = scratch("no_scale");
  auto run =
      run_python("tests/torch/export_models.py", {"--scaled", "4", TILEPILOT_SOURCE_DIR "/scripts/export_reference.py",
                                                  write_model(folder, kSized), "model", folder / "out"});
  EXPECT_THAT(run.output, HasSubstr("`4` is no scale"));
}

// Weights that do not lie in row-major order are written in parts: a second copy of them would show in the peak.
TEST(Reference, WritesWeightsWithoutASecondCopy) {
  constexpr int64_t kMegabytes = 384;
  auto folder = scratch("large");
  auto model = write_model(folder, replaced(kGood, "def forward", R"(def __init__(self):
        super().__init__()
        self.turned = torch.nn.Parameter(torch.ones(8192, 12288).t())
    def forward)"));
  auto run = run_python("tests/torch/peak_memory.py",
                        {TILEPILOT_SOURCE_DIR "/scripts/export_reference.py", model, (folder / "out").string()});
  auto answer = nlohmann::json::parse(run.output, nullptr, false);
  ASSERT_FALSE(answer.is_discarded()) << run.output;
  EXPECT_GT(answer.at("grown").get<int64_t>(), kMegabytes << 20);
  constexpr int64_t kTracer = 320;  // what PyTorch's own tracer takes, less than a second copy
  EXPECT_LT(answer.at("grown").get<int64_t>(), (kMegabytes + kTracer) << 20);
  auto weights = load_safetensors(folder / "out/weights.safetensors");
  ASSERT_TRUE(weights.ok());
  EXPECT_EQ(weights->at("turned").sum().item<double>(), 8192.0 * 12288.0);
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
