// What the trace of an eager function read outside of the compiler: values of globals, attributes of objects. A kernel
// is made from these, and is no kernel for a call that would read something else.
#pragma once

#include <functional>
#include <memory>

namespace tilepilot::stage {

class OuterReads {
 public:
  virtual ~OuterReads() = default;
  // Between these, everything that is read is noted.
  virtual void begin() = 0;
  virtual void end() = 0;
  // Whether reading all of it again gives the same.
  virtual bool are_as_noted() const = 0;
};

using MakeOuterReads = std::function<std::shared_ptr<OuterReads>()>;

}  // namespace tilepilot::stage
