// One page with all drawings of a picture and the program beside them: a file of its own, without a network.
#pragma once

#include <utility>

#include "show/drawings.h"

namespace tilepilot::show {

inline constexpr size_t kMostPageBytes = size_t{2} << 20;

// @post at most kMostPageBytes: drawings show fewer cells, or are left out with a sentence that says so
std::string page(const Picture& picture);

// A file each: names and contents.
std::vector<std::pair<std::string, std::string>> svg_files(const Picture& picture);

}  // namespace tilepilot::show
