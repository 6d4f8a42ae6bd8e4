#include "agent/llm/answer.h"

#include <fmt/format.h>

#include <algorithm>

#include "agent/llm/nearest_lines.h"
#include "agent/llm/quotation.h"

namespace tilepilot::agent {
namespace {

constexpr std::string_view kSearch = "<<<<<<< SEARCH", kMiddle = "=======", kReplace = ">>>>>>> REPLACE";

std::string_view take_answer_line(std::string_view& text) {
  std::string_view line = text.substr(0, text.find('\n'));
  text.remove_prefix(std::min(line.size() + 1, text.size()));
  if (line.ends_with('\r')) line.remove_suffix(1);
  return line;
}

std::string_view without_decoration(std::string_view line, std::string_view decoration) {
  const size_t begin = line.find_first_not_of(decoration);
  if (begin == std::string_view::npos) return {};
  return line.substr(begin, line.find_last_not_of(decoration) + 1 - begin);
}

bool is_marker(std::string_view line, std::string_view marker) { return without_decoration(line, " \t") == marker; }

PatchBlock unfinished(PatchBlock block) {
  block.has_end = false;
  return block;
}

// In order, with those that are not closed: an answer that was cut off has one.
std::vector<PatchBlock> patch_in(std::string_view text) {
  std::vector<PatchBlock> blocks;
  enum class In { text, search, replace } in = In::text;
  PatchBlock block;
  while (!text.empty()) {
    const std::string_view line = take_answer_line(text);
    if (is_marker(line, kSearch)) {
      if (in != In::text) blocks.push_back(unfinished(std::move(block)));
      block = {};
      in = In::search;
    } else if (in == In::search && is_marker(line, kMiddle)) {
      in = In::replace;
    } else if (in == In::replace && is_marker(line, kReplace)) {
      blocks.push_back(std::move(block));
      in = In::text;
    } else if (in != In::text) {
      std::string& part = in == In::search ? block.search : block.replace;
      part += std::string(line) + "\n";
    }
  }
  if (in != In::text) blocks.push_back(unfinished(std::move(block)));
  return blocks;
}

std::vector<std::string> questions_in(std::string_view text) {
  constexpr size_t kMost = 6;
  std::vector<std::string> questions;
  while (!text.empty() && questions.size() < kMost) {
    // "ask:", "Ask:", "- ask:", "2. ask:"
    std::string_view line = without_decoration(take_answer_line(text), " \t*-`>");
    line.remove_prefix(std::min(line.find_first_not_of("0123456789.) "), line.size()));
    if (line.starts_with("ask:") || line.starts_with("Ask:"))
      questions.emplace_back(without_decoration(line.substr(4), " \t`"));
  }
  return questions;
}

// For progress lines and reports: what stands before the program, in one line.
std::string summary_in(std::string_view text) {
  constexpr size_t kMost = 160;
  while (!text.empty()) {
    const std::string_view line = without_decoration(take_answer_line(text), " \t*#");
    if (line.empty()) continue;
    if (line.starts_with("```") || line.starts_with("<<<<<<<") || line.starts_with("class ")) break;
    return in_one_line(line.substr(0, kMost));
  }
  return "language model";
}

}  // namespace

bool says_done(std::string_view answer) {
  while (!answer.empty())
    if (without_decoration(take_answer_line(answer), " \t\r.*`\"") == "DONE") return true;
  return false;
}

std::string program_in(std::string_view answer) {
  std::string_view found;
  for (size_t fence = answer.find("```"); fence != std::string_view::npos;) {
    size_t begin = answer.find('\n', fence);
    if (begin == std::string_view::npos) break;
    size_t end = answer.find("\n```", begin);
    if (end == std::string_view::npos) break;
    std::string_view block = answer.substr(begin + 1, end - begin);
    const bool is_patch = block.find(kSearch) != std::string_view::npos;
    if (!is_patch && block.find("class ModelNew") != std::string_view::npos) found = block;
    fence = answer.find("```", end + 4);
  }
  if (found.empty() && answer.find("```") == std::string_view::npos && answer.find(kSearch) == std::string_view::npos &&
      answer.find("class ModelNew") != std::string_view::npos)
    found = answer;
  return std::string(found);
}

LlmAnswer read_answer(std::string_view text) {
  LlmAnswer answer;
  answer.program = program_in(text);
  answer.patch = patch_in(text);
  answer.done = says_done(text);
  if (answer.program.empty() && answer.patch.empty()) answer.questions = questions_in(text);
  answer.summary = summary_in(text);
  return answer;
}

Patched apply_patch(std::string program, const std::vector<PatchBlock>& patch) {
  if (!program.ends_with('\n')) program += '\n';
  for (size_t i = 0; i < patch.size(); ++i) {
    const PatchBlock& block = patch[i];
    auto problem = [&](std::string_view what) { return Patched{"", fmt::format("Block {}: {}", i + 1, what)}; };
    if (!block.has_end) return problem("it does not end with `>>>>>>> REPLACE`, so that no block was applied.");
    if (block.search.empty()) return problem("there is no text under SEARCH.");
    // Whole lines only.
    size_t found = std::string::npos;
    int count = 0;
    for (size_t at = program.find(block.search); at != std::string::npos; at = program.find(block.search, at + 1)) {
      if (at > 0 && program[at - 1] != '\n') continue;
      found = at;
      ++count;
    }
    if (count == 0)
      return problem(fmt::format(
          "its text under SEARCH is not in {}, character by character and as whole lines; no block was applied. {}",
          i == 0 ? "the base" : "the base as the blocks before it leave it", nearest_lines(program, block.search)));
    if (count > 1)
      return problem(fmt::format(
          "its text under SEARCH is in the base more than once ({}); no block was applied. Add lines around it.",
          places_of(program, block.search)));
    program.replace(found, block.search.size(), block.replace);
  }
  return {std::move(program), ""};
}

}  // namespace tilepilot::agent
