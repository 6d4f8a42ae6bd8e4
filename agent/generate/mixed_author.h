// The author `builtin` first, which costs nothing, then another one where there is something left to gain.
#pragma once

#include <functional>
#include <memory>

#include "agent/generate/author.h"

namespace tilepilot::agent {

struct MixedAuthorOptions {
  double least_s = 0;           // the roofline; 0: unknown
  double least_headroom = 1.2;  // times the roofline that the best must take for more to be worth trying
  bool force = false;           // whatever the headroom
  std::function<void(const std::string&)> progress = [](const std::string&) {};
};

// `second` is made when it is needed. A first author that fails is no failure of the run: the second one follows.
std::unique_ptr<Author> mixed_author(std::unique_ptr<Author> first,
                                     std::function<Result<std::unique_ptr<Author>>()> second,
                                     MixedAuthorOptions options);

}  // namespace tilepilot::agent
