#include "compiler/syntax/tree.h"

#include <array>
#include <mutex>
#include <shared_mutex>
#include <unordered_set>

namespace tilepilot::syntax {
namespace {

struct TextHash {
  using is_transparent = void;
  size_t operator()(std::string_view text) const { return std::hash<std::string_view>{}(text); }
};

// The texts of all names. Only grows; a node of the set never moves, so its address identifies the name.
class NamePool {
 public:
  const std::string* intern(std::string_view text) {
    {
      std::shared_lock lock(mutex_);
      auto found = texts_.find(text);
      if (found != texts_.end()) return &*found;
    }
    std::unique_lock lock(mutex_);
    return &*texts_.emplace(text).first;
  }

 private:
  std::shared_mutex mutex_;
  std::unordered_set<std::string, TextHash, std::equal_to<>> texts_;
};

// Never destroyed: names may be compared and printed by the destructors of static objects.
NamePool& pool() {
  static auto* const names = new NamePool;
  return *names;
}

constexpr std::array<std::string_view, 4> kUnarySpelling{"+", "-", "~", "not"};
constexpr std::array<std::string_view, 13> kBinarySpelling{"+",  "-",  "*",  "@", "/", "//", "%",
                                                           "**", "<<", ">>", "&", "|", "^"};
constexpr std::array<std::string_view, 10> kCompareSpelling{"==", "!=", "<",      "<=", ">",
                                                            ">=", "is", "is not", "in", "not in"};

}  // namespace

Name::Name(std::string_view text) : text_(pool().intern(text)) {}

std::string_view spelling(UnaryOp op) { return kUnarySpelling[static_cast<size_t>(op)]; }
std::string_view spelling(BinaryOp op) { return kBinarySpelling[static_cast<size_t>(op)]; }
std::string_view spelling(CompareOp op) { return kCompareSpelling[static_cast<size_t>(op)]; }

}  // namespace tilepilot::syntax
