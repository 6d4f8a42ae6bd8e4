// Objects that hang together in long chains, lists in lists, iterators over iterators: where one ends, the next would
// be destroyed inside it, and so on, further than any stack reaches.
#pragma once

#include <memory>

namespace tilepilot::stage {

// Gives up the object. Beyond a depth that every stack has room for, one that is held no more waits for the outermost.
void drop(std::shared_ptr<const void> object) noexcept;

}  // namespace tilepilot::stage
