// Programs in the tile language, and the pictures of their kernels.
#pragma once

#include <string>

#include "show/show.h"

namespace tilepilot::show::testing {

struct Shown {
  std::string text;
  std::string call = "program()";
  std::string target = "emulate:sm_80";
  int64_t block = 0;
  bool executes = true;
  std::map<std::string, int64_t> extents = {};
};

// Fails the test if the program does not compile. `text` is the module after its imports, which are two lines.
Picture shown(const Shown& program);

// The line, from 1 on, of the module that ends with this comment.
int line_of(const Picture& picture, const std::string& comment);

const RegisterTile& registers_of(const Picture& picture, const std::string& name);
const SharedPicture& shared_of(const Picture& picture, const std::string& name);

// C = A * B^T of fp16, tiles of m x n x k, by `threads` threads with `stages` stages.
std::string product(const std::string& tiles, int stages, int threads);

}  // namespace tilepilot::show::testing
