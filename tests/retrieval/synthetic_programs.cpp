#include "tests/retrieval/synthetic_programs.h"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>

#include "tests/retrieval/kernelbench_operators.h"

namespace tilepilot::retrieval {
namespace {

// Of the links of KernelBench's graphs: from the operator just before, and by a second input.
constexpr double kFromBefore = 0.9, kSecondInput = 0.05;
// Pairs that KernelBench does not have, but another model might.
constexpr double kUnseen = 0.05;

int graph_size(std::mt19937& random) {
  int total = 0;
  for (const auto& [size, count] : kGraphSizes) total += count;
  int at = std::uniform_int_distribution<>(0, total - 1)(random);
  for (const auto& [size, count] : kGraphSizes)
    if ((at -= count) < 0) return size;
  return 1;
}

}  // namespace

SyntheticPrograms::SyntheticPrograms(uint32_t seed) : random_(seed) {
  std::istringstream lines(kFollowers);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    Follower follower;
    std::string op;
    if (!(words >> op)) continue;
    op.pop_back();
    if (table_.empty() || table_.back().op != op) table_.push_back({op, {}, 0});
    while (words >> follower.op >> follower.count) {
      table_.back().list.push_back(follower);
      table_.back().total += follower.count;
    }
  }
}

const SyntheticPrograms::Followers* SyntheticPrograms::followers_of(const std::string& op) const {
  const auto found = std::find_if(table_.begin(), table_.end(), [&](const Followers& each) { return each.op == op; });
  return found == table_.end() ? nullptr : &*found;
}

const std::string& SyntheticPrograms::draw(const Followers& followers) {
  int at = std::uniform_int_distribution<>(0, followers.total - 1)(random_);
  for (const Follower& follower : followers.list)
    if ((at -= follower.count) < 0) return follower.op;
  return followers.list.back().op;
}

Structure SyntheticPrograms::structure() {
  Structure structure;
  const int size = graph_size(random_);
  std::vector<std::string> plain;
  for (int at = 0; at < size; ++at) {
    const int from = at == 0                   ? -1
                     : uniform() < kFromBefore ? at - 1
                                               : std::uniform_int_distribution<>(0, at - 1)(random_);
    const Followers* followers = from < 0 ? &table_.front() : followers_of(plain[static_cast<size_t>(from)]);
    if (followers == nullptr || (from >= 0 && uniform() < kUnseen))
      followers = &table_[std::uniform_int_distribution<size_t>(0, table_.size() - 1)(random_)];
    plain.push_back(draw(*followers));
    structure.ops.push_back("aten::" + plain.back());
    auto link = [&](int source) {
      structure.edges.emplace_back(structure.ops[static_cast<size_t>(source)], structure.ops.back());
      structure.links.emplace_back(source, at);
    };
    if (from >= 0) link(from);
    if (at > 1 && uniform() < kSecondInput) link(std::uniform_int_distribution<>(0, at - 2)(random_));
  }
  const double dtype = uniform();
  structure.dtype = dtype < 0.7 ? "float32" : dtype < 0.9 ? "bfloat16" : "float16";
  structure.largest_elements = int64_t{1} << std::uniform_int_distribution<>(10, 28)(random_);
  return structure;
}

Entry SyntheticPrograms::entry(int64_t number) {
  Entry entry;
  entry.name = fmt::format("synthetic_{}", number);
  entry.origin = "generated";
  entry.structure = structure();
  entry.summary = fmt::format("{} operators", entry.structure.ops.size());
  entry.source = fmt::format("number = {}\n", number);
  entry.speedup = 0.5 + 4 * uniform();
  const double target = uniform();
  entry.target = target < 0.4 ? "cpu" : target < 0.7 ? "cuda:sm_80" : "cuda:sm_90a";
  return entry;
}

}  // namespace tilepilot::retrieval
