// The rules of who may include whom, and the check of a set of files against them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tilepilot::layering {

// A folder and the folders it may include; its own is always allowed. "folder/..." means its subfolders too: they are
// one layer, in which only cycles of files are forbidden; but for those that have a row of their own.
struct Layer {
  std::string folder;
  std::vector<std::string> may_include;
};

// A third-party library and the only folders that may include its headers, subfolders among them.
struct ThirdParty {
  std::string header_prefix;
  std::vector<std::string> folders;
};

struct Rules {
  std::vector<Layer> layers;
  std::vector<ThirdParty> third_party;
};

// The rules of this repository.
const Rules& project_rules();

struct SourceFile {
  std::string path;  // relative to the root, with forward slashes
  std::string text;
};

// One line for each broken rule: an include that no rule allows, a folder that is not listed, a header that does not
// exist, a cycle of files.
std::vector<std::string> violations(const Rules& rules, const std::vector<SourceFile>& files);

// A cycle among the layers of the table itself ("a -> b -> a"), or "".
std::string cycle_of_layers(const Rules& rules);

}  // namespace tilepilot::layering
