// No two files define a class of the same name in the same namespace: linkers take either, without a word.
#include <gmock/gmock.h>

#include <map>
#include <regex>
#include <sstream>

#include "tests/layering/project_files.h"

namespace tilepilot::layering {
namespace {

// "namespace::Class" of each class that a file defines at the top level of a named namespace.
std::vector<std::string> classes_of(const std::string& text) {
  static const std::regex kNamespace(R"(^namespace ([\w:]*) ?\{$)"),
      kClass(R"(^(?:class|struct) (\w+)(?: final)?(?: :.*)? \{.*)");
  std::vector<std::string> found;
  std::string space;
  bool anonymous = false;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    // Regular expressions take long: only on lines that begin as one of these may.
    if (line.empty() || std::string_view("ncs}").find(line[0]) == std::string_view::npos) continue;
    std::smatch match;
    if (std::regex_match(line, match, kNamespace)) {
      anonymous = match[1].length() == 0;
      if (!anonymous) space = match[1];
    } else if (line == "}  // namespace") {
      anonymous = false;
    } else if (!anonymous && std::regex_match(line, match, kClass)) {
      found.push_back(space + "::" + match[1].str());
    }
  }
  return found;
}

std::vector<std::string> repeated_classes(const std::vector<SourceFile>& files) {
  std::map<std::string, std::string> first;
  std::vector<std::string> repeated;
  for (const SourceFile& file : files) {
    // Each folder of tests is a program of its own, and so is each prelude with the kernels that it is for.
    const bool is_own = file.path.starts_with("tests/") || file.path.ends_with(".in");
    std::string program = is_own ? file.path.substr(0, file.path.rfind('/')) : "";
    for (const std::string& name : classes_of(file.text)) {
      auto [known, added] = first.emplace(program + name, file.path);
      if (!added) repeated.push_back(name + ": " + known->second + ", " + file.path);
    }
  }
  return repeated;
}

TEST(OneDefinition, HoldsInThisRepository) { EXPECT_THAT(repeated_classes(project_files()), ::testing::IsEmpty()); }

TEST(OneDefinition, FindsTheSameClassTwice) {
  const std::string text =
      "namespace a {\nclass X : public Y {\n};\nnamespace {\nstruct Z {\n};\n}  // namespace\n}  // namespace a\n";
  EXPECT_THAT(repeated_classes({{"p/one.h", text}, {"p/two.cpp", text}}),
              ::testing::ElementsAre("a::X: p/one.h, p/two.cpp"));
}

}  // namespace
}  // namespace tilepilot::layering
