// Expressions and modules evaluated by real PyTorch and by the host room: types, shapes, strides and bytes must agree.
#include <ATen/ATen.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/torch/host_room.h"
#include "tests/torch/python_runner.h"

namespace tilepilot::eval {
namespace {

using nlohmann::json;
using stage::Value;

std::string read_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

std::vector<std::string> read_cases(const std::string& path) {
  std::vector<std::string> cases;
  std::istringstream lines(read_file(path));
  for (std::string line; std::getline(lines, line);) {
    if (!line.empty() && line[0] != '#') cases.push_back(line);
  }
  return cases;
}

// A case that starts with this mark agrees to rounding only: recurrent and attention layers run products of other
// shapes than Python's modules do, in oneDNN or MKL, which sum in another order. Their weights are compared to the bit
// by other cases.
constexpr char kRounding = '~';
constexpr double kRoundingTolerance = 1e-6;

std::string expression_of(const std::string& line) { return line[0] == kRounding ? line.substr(1) : line; }

std::string program_of(const std::vector<std::string>& cases, const std::string& prelude) {
  std::string text = prelude + fmt::format("\nCASES = {}\n", cases.size());
  for (size_t i = 0; i < cases.size(); ++i) {
    text += fmt::format("\ndef case_{}():\n    torch.manual_seed({})\n    return {}\n", i, i, expression_of(cases[i]));
  }
  return text;
}

class ComparedHosts {
 public:
  ComparedHosts(testing::Room& room, const std::string& data) : room_(room), data_(data) {}

  // Largest difference of values that counts as agreement; 0: to the bit.
  double tolerance = 0;

  // Empty if they agree, else how they differ.
  std::string differ(const json& expected, const Value& actual) {
    if (expected.contains("tensor")) return differ_tensor(expected, actual);
    if (expected.contains("items")) return differ_items(expected["items"], actual);
    if (expected.contains("real")) {
      double wanted = std::strtod(expected["real"].get<std::string>().c_str(), nullptr);
      if (!actual.if_float()) return fmt::format("a {} instead of a float", actual.type_name());
      bool same = std::memcmp(&wanted, actual.if_float(), sizeof wanted) == 0;
      return same ? "" : fmt::format("{} instead of {}", *actual.if_float(), wanted);
    }
    const json& value = expected["value"];
    if (value.is_null()) return actual.is_none() ? "" : "not None";
    if (value.is_boolean()) return actual.if_bool() && *actual.if_bool() == value ? "" : "another bool";
    if (value.is_number()) return actual.if_int() && *actual.if_int() == value ? "" : "another integer";
    auto text = room_.interpreter().str(actual);
    return text.ok() && *text == value.get<std::string>() ? "" : fmt::format("`{}`", text.ok() ? *text : "no text");
  }

 private:
  std::string differ_tensor(const json& expected, const Value& actual) {
    const at::Tensor* tensor = tensor_of(actual);
    if (!tensor) return fmt::format("a {} instead of a tensor", actual.type_name());
    auto dtype = room_.interpreter().get_attribute(actual, stage::Name("dtype"), {});
    auto type = room_.interpreter().str(dtype.ok() ? *dtype : Value());
    if (!type.ok() || *type != "torch." + expected["tensor"].get<std::string>()) return "another type";
    if (tensor->sizes().vec() != expected["shape"].get<std::vector<int64_t>>()) return "another shape";
    if (tensor->strides().vec() != expected["strides"].get<std::vector<int64_t>>()) return "other strides";
    size_t begin = expected["begin"], end = expected["end"];
    at::Tensor flat = tensor->contiguous();
    if (flat.nbytes() != end - begin) return "another size";
    if (std::memcmp(flat.const_data_ptr(), data_.data() + begin, end - begin) == 0) return "";
    at::Tensor wanted = at::empty(flat.sizes(), flat.options());
    std::memcpy(wanted.data_ptr(), data_.data() + begin, end - begin);
    at::Tensor difference = (flat.to(at::kDouble) - wanted.to(at::kDouble)).abs().max();
    if (difference.item<double>() <= tolerance) return "";
    return fmt::format("other values, by at most {}", difference.item<double>());
  }

  std::string differ_items(const json& expected, const Value& actual) {
    auto items = room_.interpreter().to_vector(actual, {});
    if (!items.ok()) return fmt::format("a {} instead of a sequence", actual.type_name());
    if (items->size() != expected.size()) return fmt::format("{} items, not {}", items->size(), expected.size());
    for (size_t i = 0; i < items->size(); ++i) {
      std::string difference = differ(expected[i], (*items)[i]);
      if (!difference.empty()) return fmt::format("item {}: {}", i, difference);
    }
    return "";
  }

  testing::Room& room_;
  const std::string& data_;
};

void compare_with_python(const std::string& name) {
  std::string folder = std::string(TILEPILOT_SOURCE_DIR) + "/tests/torch/";
  auto cases = read_cases(folder + "host/" + name + ".txt");
  std::string program = program_of(cases, read_file(folder + "host_prelude.py"));
  auto scratch = testing::scratch("host-" + name);
  std::ofstream(scratch / "program.py") << program;
  auto run = testing::run_python("tests/torch/host_oracle.py",
                                 {(scratch / "program.py").string(), (scratch / "expected").string()});
  if (run.exit_code == 3) GTEST_SKIP() << "this Python has no PyTorch to compare with";
  ASSERT_EQ(run.exit_code, 0) << "the oracle failed";
  json expected = json::parse(read_file(scratch / "expected.json"));
  std::string data = read_file(scratch / "expected.bin");

  testing::Room room;
  room.host().seed(0);
  auto module = room.run(program);
  ASSERT_TRUE(module.ok()) << module.error().message;
  ComparedHosts comparison(room, data);
  size_t agreed = 0;
  for (size_t i = 0; i < cases.size(); ++i) {
    auto actual = room.call(**module, fmt::format("case_{}", i));
    if (expected[i].contains("error")) {
      EXPECT_FALSE(actual.ok()) << cases[i] << "\n  PyTorch: " << expected[i]["error"];
      agreed += !actual.ok();
      continue;
    }
    comparison.tolerance = cases[i][0] == kRounding ? kRoundingTolerance : 0;
    std::string difference = actual.ok() ? comparison.differ(expected[i], *actual) : actual.error().message;
    EXPECT_EQ(difference, "") << "  in: " << cases[i];
    agreed += difference.empty();
  }
  std::printf("%zu of %zu cases of %s agree with PyTorch\n", agreed, cases.size(), name.c_str());
}

TEST(HostOracle, Expressions) { compare_with_python("expressions"); }

TEST(HostOracle, Modules) { compare_with_python("modules"); }

}  // namespace
}  // namespace tilepilot::eval
