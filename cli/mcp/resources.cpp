#include "cli/mcp/resources.h"

#include <string_view>

#include "agent/llm/language_card.h"

namespace tilepilot::cli::mcp {
namespace {

using nlohmann::json;

struct LanguageCard {
  std::string_view uri, name, title;
  bool on_gpu;
};
constexpr LanguageCard kCards[] = {
    {"tilepilot://language/gpu", "language-gpu", "The tile language on GPUs", true},
    {"tilepilot://language/cpu", "language-cpu", "The tile language on processors", false},
};
constexpr std::string_view kCardType = "text/markdown";

}  // namespace

json list_resources() {
  json resources = json::array();
  for (const LanguageCard& card : kCards)
    resources.push_back(
        {{"uri", card.uri},
         {"name", card.name},
         {"title", card.title},
         {"description", "Signatures and meanings of what programs are made of, from the compiler's tables"},
         {"mimeType", kCardType}});
  return {{"resources", std::move(resources)}};
}

std::optional<json> read_resource(const std::string& uri) {
  for (const LanguageCard& card : kCards)
    if (card.uri == uri)
      return json{
          {"contents",
           json::array({{{"uri", uri}, {"mimeType", kCardType}, {"text", agent::language_card(card.on_gpu)}}})}};
  return std::nullopt;
}

}  // namespace tilepilot::cli::mcp
