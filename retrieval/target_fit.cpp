#include "retrieval/target_fit.h"

#include <algorithm>
#include <iterator>

#include "compiler/syntax/lexer.h"

namespace tilepilot::retrieval {
namespace {

// Functions of the tile language (compiler/stage/tile) that targets refuse.
struct Needing {
  std::string_view function, need;
};
constexpr Needing kNeeding[] = {
    {"copy_cluster", "clusters"},        {"alloc_cluster_barrier", "clusters"}, {"cluster_sync", "clusters"},
    {"cluster_arrive", "clusters"},      {"cluster_wait", "clusters"},          {"cluster_arrive_relaxed", "clusters"},
    {"CUDASourceCodeKernel", "foreign"}, {"import_source", "foreign"},
};

bool has(std::string_view needs, std::string_view need) { return needs.find(need) != std::string_view::npos; }

// "cuda:sm_90a", "emulate:sm_90a" -> "sm_90a"; the processor has none.
std::string_view architecture_of(std::string_view target) {
  const size_t colon = target.find(':');
  return colon == std::string_view::npos ? std::string_view() : target.substr(colon + 1);
}

enum class Machine { processor, nvidia, amd };
Machine machine_of(std::string_view target) {
  const std::string_view architecture = architecture_of(target);
  if (architecture.starts_with("gfx")) return Machine::amd;
  return architecture.empty() ? Machine::processor : Machine::nvidia;
}

constexpr double kOtherModel = 0.8, kOtherVendor = 0.6, kOtherMachine = 0.4;

}  // namespace

std::string target_needs(const std::string& source) {
  SourceMap sources;
  const int32_t file = sources.add("program", source);
  std::string needs;
  const syntax::TokenList lexed = syntax::lex(sources, file);
  for (const syntax::Token& token : lexed.tokens) {
    if (token.kind != syntax::TokenKind::name) continue;
    const auto found = std::find_if(std::begin(kNeeding), std::end(kNeeding), [&](const Needing& each) {
      return sources.text({file, token.begin, token.end}) == each.function;
    });
    if (found == std::end(kNeeding) || has(needs, found->need)) continue;
    needs += (needs.empty() ? "" : " ") + std::string(found->need);
  }
  return needs;
}

double target_fit(std::string_view verified_for, std::string_view needs, std::string_view target) {
  const std::string_view had = architecture_of(verified_for), wanted = architecture_of(target);
  if (target.empty() || target == "auto" || verified_for == target || (had == wanted && !had.empty())) return 1;
  const Machine from = machine_of(verified_for), to = machine_of(target);
  if (from == to) return has(needs, "clusters") && wanted < had ? 0 : from == Machine::processor ? 1 : kOtherModel;
  if (has(needs, "clusters") || has(needs, "foreign")) return 0;
  return from != Machine::processor && to != Machine::processor ? kOtherVendor : kOtherMachine;
}

}  // namespace tilepilot::retrieval
