#include "agent/llm/feedback.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <set>

#include "agent/generate/pairing.h"
#include "agent/generate/tuning.h"
#include "agent/llm/language_card.h"
#include "agent/llm/memory_text.h"
#include "agent/llm/profile_text.h"
#include "agent/llm/quotation.h"
#include "eval/stage_text.h"

namespace tilepilot::agent {
namespace {

constexpr const char* kOfTimes =
    "\nOwn times are of sessions of their own: from one session to another they differ by more than most programs do. "
    "What an attempt was measured beside ran in turn with it, round by round; that alone (with a 95 % interval) "
    "decides "
    "which attempt is the best so far, and of two that are not distinguishable the older one stays.\n\n";

std::string_view word_for(const eval::Verdict& verdict) {
  return verdict.given_inputs_only ? "right on inputs like the given ones alone" : eval::to_string(verdict.outcome);
}

std::string pairing_text(const Pairing& pairing) {
  return fmt::format("{:.2f} times as fast as attempt {} ({:.2f} to {:.2f}), {}", pairing.ratio, pairing.other + 1,
                     pairing.low, pairing.high, to_string(relation_of(pairing)));
}

// What an attempt was measured beside, and what that gave.
std::string beside_text(const std::vector<Attempt>& history, size_t number, std::optional<size_t> best) {
  std::string text;
  for (const Pairing& each : history[number].pairings) text += (text.empty() ? "" : "; ") + pairing_text(each);
  if (!text.empty()) return text;
  if (!best || *best == number) return "nothing";
  const Relation relation = relation_of(history, number, *best);
  return fmt::format("nothing; {} {} attempt {} by their own times", to_string(relation),
                     relation == Relation::not_distinguishable ? "from" : "than", *best + 1);
}

std::string table_row(const std::vector<Attempt>& history, size_t number, std::optional<size_t> best) {
  const Attempt& attempt = history[number];
  const eval::Verdict& verdict = attempt.verdict;
  std::string text =
      fmt::format("| {} | {} | {}", number + 1, in_one_line(attempt.candidate.summary), word_for(verdict));
  if (!is_right(verdict)) {
    if (verdict.line > 0) text += fmt::format(" at line {}", verdict.line);
    return text + " | | |\n";
  }
  const double time = verdict.candidate ? verdict.candidate->median_us : 0;
  text += fmt::format(" | {:.1f} us, {:.2f} times eager | ", time, verdict.speedup());
  text += beside_text(history, number, best);
  return text + (best == number ? "; the best so far |\n" : " |\n");
}

// Old rows first, so that they can be left out.
void add_table(std::vector<PromptPart>& parts, const std::vector<Attempt>& history) {
  constexpr size_t kAlways = 5;
  const auto best = best_of(history);
  parts.push_back(
      {"Your attempts so far:\n\n| | what it does | verdict | own time | measured beside |\n|---|---|---|---|---|\n"});
  // Parts of one rank are left out from the last on, and the oldest row shall go first.
  const size_t old = history.size() > kAlways ? history.size() - kAlways : 0;
  std::string rows;
  for (size_t i = 0; i < old; ++i) rows += table_row(history, i, best);
  if (!rows.empty()) parts.push_back({std::move(rows), Keep::history});
  for (size_t i = old; i < history.size(); ++i) parts.push_back({table_row(history, i, best)});
  const bool timed = std::any_of(history.begin(), history.end(), [](auto& each) { return is_right(each.verdict); });
  parts.push_back({timed ? kOfTimes : "\n"});
}

// Which kernel goes wrong first.
std::string stages_of(const eval::Verdict& verdict) {
  std::vector<eval::StageCheck> stages = verdict.stages;
  for (eval::StageCheck& stage : stages) {
    stage.kernel = in_one_line(stage.kernel);
    stage.pattern = in_one_line(stage.pattern);
  }
  return fmt::format("- its kernels, held against the model's values on the way: {}\n", eval::stages_text(stages));
}

// The outputs that went wrong, worst first, a line each.
std::string wrong_values(const eval::Verdict& verdict) {
  std::vector<const eval::OutputError*> wrong;
  for (const eval::OutputError& error : verdict.errors)
    if (error.fraction_wrong > 0) wrong.push_back(&error);
  std::sort(wrong.begin(), wrong.end(), [](auto* a, auto* b) { return a->max_abs > b->max_abs; });
  std::string text;
  for (size_t i = 0; i < std::min<size_t>(wrong.size(), 3); ++i) {
    const eval::OutputError& error = *wrong[i];
    text += fmt::format(
        "- output {} in trial {}: {:.3g} % of the elements are wrong; largest error {:.3g} at {} (allowed {:.3g}, "
        "PyTorch itself errs by {:.3g})",
        error.output, error.trial, error.fraction_wrong * 100, error.max_abs, error.where, error.bound,
        error.eager_max_abs);
    if (!error.pattern.empty()) text += fmt::format("; pattern: {}", in_one_line(error.pattern));
    text += "\n";
  }
  if (!verdict.stages.empty()) text += stages_of(verdict);
  return text;
}

bool is_name(char letter) { return std::isalnum(static_cast<unsigned char>(letter)) != 0 || letter == '_'; }

// Names after "T." in a text, in order.
void add_names(std::string_view text, std::vector<std::string>& names) {
  for (size_t at = text.find("T."); at != std::string_view::npos; at = text.find("T.", at + 2)) {
    if (at > 0 && (is_name(text[at - 1]) || text[at - 1] == '.')) continue;
    size_t end = at + 2;
    while (end < text.size() && is_name(text[end])) ++end;
    std::string name(text.substr(at + 2, end - at - 2));
    if (!name.empty() && std::find(names.begin(), names.end(), name) == names.end()) names.push_back(std::move(name));
  }
}

// "`T.` has no `claer`": the name alone stands between backticks.
void add_missing_names(std::string_view message, std::vector<std::string>& names) {
  constexpr std::string_view kMissing = " has no `";
  const size_t at = message.find(kMissing);
  if (at == std::string_view::npos || message.substr(0, at).find('T') == std::string_view::npos) return;
  const std::string_view rest = message.substr(at + kMissing.size());
  names.insert(names.begin(), std::string(rest.substr(0, rest.find('`'))));
}

std::string_view line_around(std::string_view text, size_t at) {
  if (at >= text.size()) return {};
  const size_t begin = text.rfind('\n', at) == std::string_view::npos ? 0 : text.rfind('\n', at) + 1;
  return text.substr(begin, text.find('\n', at) - begin);
}

// What the compiler's tables say of the names that an error is about, or names like them.
std::string language_of_errors(const Attempt& attempt) {
  std::vector<std::string> names;
  for (const Diagnostic& diagnostic : attempt.verdict.diagnostics) {
    add_missing_names(diagnostic.message, names);
    add_names(diagnostic.message, names);
    if (diagnostic.span.valid() && diagnostic.span.file == 0)
      add_names(line_around(attempt.candidate.source, diagnostic.span.begin), names);
  }
  constexpr size_t kMost = 4;
  if (names.size() > kMost) names.resize(kMost);
  std::string text;
  for (const std::string& name : names) text += language_entry(name);
  return text.empty() ? "" : "\nWhat the language has there:\n\n" + text;
}

std::string failure_report(const Attempt& attempt) {
  const eval::Verdict& verdict = attempt.verdict;
  std::string text = fmt::format("It failed: {}", word_for(verdict));
  if (verdict.line > 0) text += fmt::format(" at line {}", verdict.line);
  if (!verdict.guard.empty()) text += fmt::format(" (guard {})", in_backticks(verdict.guard));
  text += verdict.detail.empty() ? ".\n" : fmt::format(":\n{}", fenced("", verdict.detail));
  if (verdict.given_inputs_only)
    for (const std::string& note : verdict.notes) text += "- " + in_one_line(note) + "\n";
  constexpr size_t kMostDiagnostics = 6;
  for (size_t i = 0; i < std::min(verdict.rendered.size(), kMostDiagnostics); ++i)
    text += fmt::format("\n{}", fenced("", verdict.rendered[i]));
  if (verdict.rendered.size() > kMostDiagnostics)
    text += fmt::format("\n{} further messages are left out.\n", verdict.rendered.size() - kMostDiagnostics);
  return text + wrong_values(verdict) + language_of_errors(attempt);
}

std::string share_of_bound(const eval::Verdict& verdict, const eval::LeastTime& bound) {
  if (!verdict.candidate || bound.s <= 0) return "";
  return fmt::format("The bound, {:.1f} us{}{}, is {:.0f} % of that.\n", bound.s * 1e6,
                     bound.words.empty() ? "" : " for ", bound.words,
                     100 * bound.s * 1e6 / verdict.candidate->median_us);
}

// Of a program without a profile: what keeps it from being faster, the largest share of its time first.
std::string slowness_of(const eval::Verdict& verdict, double least_s) {
  if (!verdict.candidate) return "";
  const double time = verdict.candidate->median_us, least = least_s * 1e6;
  struct Cause {
    double us;
    std::string words;
  };
  std::vector<Cause> causes;
  const double outside = time * (1 - verdict.generated_share);
  if (verdict.generated_share < 0.95)
    causes.push_back(
        {outside, fmt::format("{:.1f} us ({:.0f} %) are spent outside your kernels: in PyTorch's operators, "
                              "in allocating outputs and in launching",
                              outside, 100 * (1 - verdict.generated_share))});
  const double in_kernels = time * verdict.generated_share;
  if (least > 0 && in_kernels > 1.1 * least)
    causes.push_back(
        {in_kernels - least,
         fmt::format("{:.1f} us are spent in your kernels; the whole model needs at least {:.1f} us on this "
                     "machine, so that they could gain up to {:.1f} us",
                     in_kernels, least, in_kernels - least)});
  std::sort(causes.begin(), causes.end(), [](const Cause& a, const Cause& b) { return a.us > b.us; });
  std::string text;
  for (const Cause& cause : causes) text += "- " + cause.words + "\n";
  return text;
}

std::string speed_report(const eval::Verdict& verdict, const eval::LeastTime& bound) {
  std::string text;
  if (verdict.candidate && verdict.eager)
    text += fmt::format(
        "It takes {:.1f} us (quartiles {:.1f} to {:.1f}); PyTorch eager takes {:.1f} us: {:.2f} times as fast{}.\n",
        verdict.candidate->median_us, verdict.candidate->low_us, verdict.candidate->high_us, verdict.eager->median_us,
        verdict.speedup(),
        verdict.speedup_high > 0
            ? fmt::format(" (95 % interval {:.2f} to {:.2f})", verdict.speedup_low, verdict.speedup_high)
            : "");
  for (const eval::CompiledTiming& compiled : verdict.compiled)
    text += fmt::format("`torch.compile` ({}) takes {:.1f} us.\n", compiled.mode, compiled.timing.median_us);
  text += share_of_bound(verdict, bound);
  if (!verdict.profile) text += slowness_of(verdict, bound.s);
  if (verdict.launch_bound) text += "- a call takes less time on the GPU than launching its kernels does: fuse them\n";
  for (const std::string& note : verdict.notes) text += "- " + in_one_line(note) + "\n";
  return text;
}

// The author's own, if there is one.
std::optional<size_t> last_own(const std::vector<Attempt>& history) {
  return history.empty() ? std::nullopt : std::optional(origin_of(history, history.size() - 1));
}

std::string instruction(const std::vector<Attempt>& history, const NextStep& step) {
  switch (step.kind) {
    case NextStep::Kind::repair:
      return fmt::format(
          "\nThe base is this attempt ({}), which failed. Find the cause, mend it with the smallest change, and leave "
          "the "
          "rest as it is.\n",
          *step.base + 1);
    case NextStep::Kind::restart:
      return "\nThere is no base: several attempts have failed alike. Leave that way: write the whole file anew, the "
             "simplest program that can be right, with one kernel for what matters most and PyTorch for the rest.\n";
    case NextStep::Kind::improve:
      break;
  }
  const bool is_best = step.base == best_of(history);
  std::string text = fmt::format("\nThe base is attempt {}, {}.", *step.base + 1,
                                 is_best ? "the best so far" : "verified, though not the best so far");
  if (history[*step.base].candidate.is_variant) text += " Its open numbers have the values that were found fastest.";
  if (!is_best)
    text += " The last changes to the best so far made it no faster: try another way, from here.";
  else if (origin_of(history, *step.base) != *last_own(history))
    text += " No attempt after it was faster; they are left aside.";
  return text +
         " Name what bounds it, make one change that makes it faster, and keep what works. If you see nothing left "
         "to gain, answer DONE and nothing else.\n";
}

// Of a base that is shown in part, what is to be changed is better written anew.
std::string advice_on_length(const std::vector<Attempt>& history, const NextStep& step) {
  if (!step.base || history[*step.base].candidate.source.size() <= kLongestProgram) return "";
  return fmt::format(
      "The base is long and shown in part (`ask: program {}` shows more). Write a whole file, with loops in kernels "
      "for what it repeats, rather than changes to it.\n",
      *step.base + 1);
}

// Where the time of the base goes; in short, that of this attempt where it is another one.
void add_profiles(std::vector<PromptPart>& parts, const std::vector<Attempt>& history, const NextStep& step,
                  size_t last, const ModelTimes& model) {
  const auto has_profile = [&](size_t number) {
    return is_right(history[number].verdict) && history[number].verdict.profile;
  };
  const size_t base = step.base.value_or(last);
  if (base != last && has_profile(last))
    parts.push_back({"\nWhere a call's time goes in this attempt, as measured in calls of their own:\n\n" +
                     profile_rows(*history[last].verdict.profile, model)});
  if (!has_profile(base)) return;
  parts.push_back(
      {fmt::format("\nWhere a call's time goes in attempt {}, the base, as measured in calls of their "
                   "own:\n\n",
                   base + 1)});
  for (PromptPart& part : profile_parts(history[base].verdict, model)) parts.push_back(std::move(part));
}

// The fastest first, of each program and its variants the fastest alone.
std::vector<size_t> verified_by_speed(const std::vector<Attempt>& history) {
  const auto speeds = relative_speeds(history);
  const auto best = best_of(history);
  std::vector<size_t> order;
  for (size_t i = 0; i < history.size(); ++i)
    if (is_right(history[i].told())) order.push_back(i);
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    if (best == a || best == b) return best == a && best != b;
    return speeds[a].speed > speeds[b].speed;
  });
  std::set<size_t> seen;
  std::erase_if(order, [&](size_t i) { return !seen.insert(origin_of(history, i)).second; });
  return order;
}

// How far a program came that failed.
int progress_of(const eval::Verdict& verdict) {
  switch (verdict.outcome) {
    case eval::Outcome::compile_error:
      return 0;
    case eval::Outcome::runtime_error:
    case eval::Outcome::crashed:
    case eval::Outcome::timed_out:
    case eval::Outcome::out_of_memory:
    case eval::Outcome::weights_mismatch:
      return 1;
    case eval::Outcome::wrong_shape:
    case eval::Outcome::wrong_dtype:
    case eval::Outcome::wrong_strides:
    case eval::Outcome::rejected:
      return 2;
    case eval::Outcome::verified:  // for inputs like the given ones
      return 4;
    default:
      return 3;
  }
}

// Of the last attempts, all failed, the one that came furthest and was not changed since; the newest of several.
size_t to_repair(const std::vector<Attempt>& history, const std::vector<size_t>& failed) {
  std::set<size_t> changed;
  for (const Attempt& attempt : history)
    if (attempt.candidate.changes) changed.insert(*attempt.candidate.changes);
  size_t chosen = failed.front();  // the newest
  for (const size_t number : failed)
    if (changed.count(number) == 0 && progress_of(history[number].verdict) > progress_of(history[chosen].verdict))
      chosen = number;
  return chosen;
}

}  // namespace

int attempts_without_progress(const std::vector<Attempt>& history, size_t first) {
  const auto best = best_of(history);
  if (!best) return 0;
  int count = 0;
  for (size_t i = std::max(*best + 1, first); i < history.size(); ++i) count += !history[i].candidate.is_variant;
  return count;
}

NextStep next_step(const std::vector<Attempt>& history, size_t first) {
  using Kind = NextStep::Kind;
  std::vector<size_t> failed;  // at the end, the newest first
  size_t alike = 0;
  for (size_t i = history.size(); i-- > first;) {
    if (history[i].candidate.is_variant) continue;
    if (is_right(history[i].verdict)) break;
    failed.push_back(i);
    if (alike == failed.size() - 1 && history[i].verdict.outcome == history[failed.front()].verdict.outcome) ++alike;
  }
  const auto order = verified_by_speed(history);
  constexpr size_t kMostRepairs = 3;
  if (order.empty()) {
    if (failed.empty()) return {Kind::restart, std::nullopt};
    if (failed.size() % kMostRepairs == 0 && alike >= kMostRepairs) return {Kind::restart, std::nullopt};
    return {Kind::repair, to_repair(history, failed)};
  }
  // A change to a verified program is mended twice before it is given up.
  if (!failed.empty() && failed.size() < kMostRepairs) return {Kind::repair, to_repair(history, failed)};
  constexpr double kNear = 0.75;
  const bool stuck = attempts_without_progress(history, first) % 4 >= 2;
  const auto speeds = relative_speeds(history);
  if (stuck && order.size() > 1 && speeds[order[1]].speed >= kNear * speeds[order[0]].speed)
    return {Kind::improve, order[1]};
  return {Kind::improve, order[0]};
}

std::vector<PromptPart> feedback_prompt(const std::vector<Attempt>& history, const NextStep& step,
                                        const FeedbackFacts& facts) {
  std::vector<PromptPart> parts;
  add_table(parts, history);
  // What is to be mended, else the author's last; variants are in the table.
  const size_t number = step.kind == NextStep::Kind::repair ? *step.base : *last_own(history);
  const Attempt& last = history[number];
  const auto best = best_of(history);
  const bool ok = is_right(last.verdict);
  std::string heading = fmt::format("This attempt is attempt {}", number + 1);
  if (ok)
    heading += fmt::format(": verified, correct on all trials{}.\n", best == number ? ", and the best so far" : "");
  if (!ok) heading += ". ";
  parts.push_back({heading + (ok ? speed_report(last.verdict, facts.bound) : failure_report(last)) +
                   tuning_report(history, number, facts.variants)});
  add_profiles(parts, history, step, number, {facts.bound.s, facts.products});
  if (!ok && !facts.fixes.empty()) parts.push_back({fixes_text(facts.fixes), Keep::memory});
  if (best && step.base != best)
    parts.push_back({fmt::format("\nThe best so far is attempt {}, another program than the base:\n\n{}", *best + 1,
                                 fenced_program(history[*best].candidate.source))});
  parts.push_back({instruction(history, step) + advice_on_length(history, step)});
  return parts;
}

}  // namespace tilepilot::agent
