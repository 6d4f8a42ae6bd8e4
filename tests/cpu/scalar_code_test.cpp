// What is told of code that handles one element at a time is true of the compiled code.
#include <gmock/gmock.h>

#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "compiler/passes/pipeline.h"
#include "compiler/runtime/process.h"
#include "compiler/runtime/sealed_file.h"
#include "compiler/targets/cpu/codegen.h"
#include "kernel_fixture.h"

namespace tilepilot::testing {
namespace {

namespace fs = std::filesystem;
using targets::c::ScalarCode;
using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

struct Generated {
  std::string source;
  std::vector<ScalarCode> scalar_code;
};

Generated generated(const std::string& text) {
  const auto lowered = passes::run_pipeline(parse(text));
  EXPECT_TRUE(lowered.ok());
  auto code = targets::cpu::generate(*lowered);
  EXPECT_TRUE(code.ok());
  return {targets::cpu::prelude() + code->source, code->scalar_code.at(0)};
}

std::vector<ScalarCode> scalar_code_of(const std::string& body) {
  return generated(
             "program p(a: float32[64, 64], b: float32[64, 64], c: float32[64]) {\n  kernel bx in 1 threads 32 "
             "{\n    fragment s: float32[1]\n" +
             body + "  }\n}\n")
      .scalar_code;
}

class CalledFunctions : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "tilepilot-cache-XXXXXX").string();
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  void TearDown() override { fs::remove_all(folder_); }

  // The names that the compiled code wants from other libraries, a line each, as `nm` tells them.
  std::string names_wanted_by(const std::string& source) {
    fs::remove_all(folder_);
    DiagnosticList warnings;
    EXPECT_TRUE(runtime::Toolchain({"", folder_, {}}).load(source, warnings).ok());
    const auto secret = runtime::secret_of(folder_, false);
    const fs::path library = folder_ / "library.so";
    for (const auto& entry : fs::recursive_directory_iterator(folder_)) {
      if (!entry.is_regular_file() || entry.path().filename() == runtime::kSecretFile) continue;
      const auto sealed = runtime::read_sealed(entry.path(), entry.path().filename().string(), *secret);
      if (sealed.content) std::ofstream(library, std::ios::binary) << *sealed.content;
    }
    const auto listed = runtime::run_process({"nm", "-D", "--undefined-only", library.string()}, {});
    EXPECT_TRUE(listed.ok() && listed->exit_code == 0);
    return listed.ok() ? listed->out : "";
  }
  static bool calls(const std::string& names, const std::string& function) {
    return names.find(" " + function + "@") != std::string::npos;
  }

  fs::path folder_;
};

TEST_F(CalledFunctions, AreThoseThatAreTold) {
  const std::vector<std::string> of_one = {"exp",  "exp2",  "log",   "log2",  "log10", "log1p",  "sqrt", "rsqrt",
                                           "sin",  "cos",   "tan",   "sinh",  "cosh",  "tanh",   "asin", "acos",
                                           "atan", "asinh", "acosh", "atanh", "erf",   "sigmoid"};
  const std::vector<std::string> of_two = {"pow", "atan2", "hypot", "ldexp", "nextafter", "fmod"};
  for (const std::string type : {"float32", "float64"}) {
    // One program for all of them: a compilation takes a while.
    std::string text = fmt::format("program p(a: {0}[64], b: {0}[64]) {{\n  kernel bx in 1 threads 32 {{\n", type);
    for (const auto& name : of_one) text += fmt::format("    parallel i in 64 {{ b[i] = b[i] + {}(a[i]) }}\n", name);
    for (const auto& name : of_two)
      text += fmt::format("    parallel i in 64 {{ b[i] = b[i] + {}(a[i], b[i]) }}\n", name);
    const Generated code = generated(text + "  }\n}\n");
    const std::string wanted = names_wanted_by(code.source);
    std::vector<std::string> all = of_one;
    all.insert(all.end(), of_two.begin(), of_two.end());
    for (const std::string& name : all) {
      if (name == "sigmoid" || name == "rsqrt") continue;  // the C library has no function of that name
      const bool told = std::any_of(code.scalar_code.begin(), code.scalar_code.end(),
                                    [&](const ScalarCode& each) { return each.what == "`" + name + "`"; });
      EXPECT_EQ(told, calls(wanted, name + (type == "float32" ? "f" : ""))) << name << " of " << type;
    }
  }
}

TEST(ScalarCode, IsNotToldOfVectorLoops) {
  EXPECT_THAT(scalar_code_of("    parallel i, j in 64, 64 { b[i, j] = exp(a[i, j]) + pow(a[i, j], 2.0) }\n"),
              IsEmpty());
  // A serial loop that goes outside.
  EXPECT_THAT(
      scalar_code_of("    parallel i in 64 {\n      serial k in 64 {\n        c[i] = c[i] + a[k, i]\n      }\n    }\n"),
      IsEmpty());
}

TEST(ScalarCode, TellsWhyALoopIsNoVectorLoop) {
  const auto told = [](const std::string& body) { return scalar_code_of(body); };
  const auto because = [](const std::string& what, const std::string& why) {
    return ElementsAre(::testing::AllOf(Field(&ScalarCode::what, what), Field(&ScalarCode::why, HasSubstr(why)),
                                        Field(&ScalarCode::span, ::testing::Property(&Span::valid, true))));
  };
  EXPECT_THAT(told("    parallel i in 64 { s[0] = s[0] * 0.5 + c[i] }\n"),
              because("loop over `i`", "all its iterations write the same element of `s`"));
  EXPECT_THAT(told("    parallel i in 64 {\n      while c[i] > 5.0 {\n        c[i] = c[i] - 1.0\n      }\n    }\n"),
              because("loop over `i`", "`while`"));
  EXPECT_THAT(told("    parallel i in 64 { c[i] = atan(c[i]) }\n"), because("`atan`", "C library"));
}

TEST(ScalarCode, IsAmongTheFactsOfALaunch) {
  const auto kernel = compile(
      parse("program p(a: float32[64], b: float32[64]) {\n  kernel bx in 1 threads 32 {\n    parallel i in 64 { b[i] = "
            "sinh(a[i]) }\n  }\n}\n"));
  ASSERT_TRUE(kernel);
  const auto facts = kernel->facts();
  ASSERT_EQ(facts.size(), 1u);
  ASSERT_EQ(facts[0].scalar.size(), 1u);
  EXPECT_EQ(facts[0].scalar[0].what, "`sinh`");
}

}  // namespace
}  // namespace tilepilot::testing
