// Whether what a tile holds is read again. The walker keeps the road from the kernel's body to the place at hand.
#pragma once

#include <vector>

#include "compiler/ir/stmt.h"

namespace tilepilot::passes {

class TileLiveness {
 public:
  // Going into the body of the statement `parent` (null for the kernel's own), at its first statement.
  void enter(const std::vector<ir::Stmt>& body, const ir::Stmt& parent);
  void leave() { road_.pop_back(); }
  // The place is now just before statement `next` of the innermost body.
  void stand_before(size_t next) { road_.back().next = next; }

  // True if no path from here reads `tile` before it is written as a whole. Wherever it cannot tell: false.
  bool is_dead(const ir::Buffer& tile) const;

 private:
  struct Place {
    const std::vector<ir::Stmt>* body;
    ir::Stmt parent;
    size_t next;
  };
  std::vector<Place> road_;

  enum class Effect { none, reads, overwrites };
  static Effect effect(const ir::Stmt& stmt, const ir::Buffer& tile);
  static Effect first_effect(const std::vector<ir::Stmt>& body, size_t begin, size_t end, const ir::Buffer& tile);
};

}  // namespace tilepilot::passes
