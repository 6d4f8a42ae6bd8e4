#include "eval/worker/candidate_link.h"

#include <fmt/format.h>
#include <signal.h>

#include <cstring>

#include "eval/worker/candidate_process.h"

namespace tilepilot::eval {

Result<std::unique_ptr<CandidateLink>> CandidateLink::start(const std::filesystem::path& executable, int threads,
                                                            const std::string& source) {
  auto link = std::unique_ptr<CandidateLink>(new CandidateLink);
  link->sources_.add("candidate", source);
  link->crumb_ = std::make_unique<CrumbPage>();
  if (!link->crumb_->get()) {
    return make_error(DiagnosticKind::worker_unavailable, {}, "there is no memory for a candidate's process");
  }
  link->process_ = TRY(WorkerProcess::start({.executable = executable,
                                             .role = "candidate",
                                             .threads = threads,
                                             .descriptors = {link->crumb_->descriptor()},
                                             .dies_with_thread = true}));
  return link;
}

std::optional<Message> CandidateLink::ask(const nlohmann::json& request,
                                          const std::vector<std::vector<at::Tensor>>& files) {
  nlohmann::json body = request;
  std::vector<Descriptor> packed;
  std::vector<int> descriptors;
  nlohmann::json descriptions = nlohmann::json::array();
  for (auto& tensors : files) {
    auto file = pack_tensors(tensors);
    if (!file.ok()) {
      failure_.outcome = Outcome::worker_failed;
      failure_.detail = file.error().message;
      return std::nullopt;
    }
    descriptions.push_back(file->description);
    descriptors.push_back(file->file.number());
    packed.push_back(std::move(file->file));
  }
  if (files.size() == 1) body["tensors"] = descriptions[0];
  if (files.size() > 1) body["sets"] = descriptions;
  constexpr double kShortest = 1e-3;
  const double begin = monotonic_seconds(), spared = spared_seconds(), left = left_;
  process_->wire().send(body, descriptors);
  bool arrives = false;
  do {
    arrives = process_->wire().await(std::max(left_, kShortest));
    left_ = left - (monotonic_seconds() - begin) + (spared_seconds() - spared);
  } while (!arrives && left_ > 0 && monotonic_seconds() - begin < kPatience * limit_);
  auto answer = process_->wire().receive(arrives ? limit_ : kShortest);
  if (!answer) {
    explain_end();
    return std::nullopt;
  }
  if (answer->body.contains("failure")) {
    failure_ = verdict_from_json(answer->body["failure"]);
    return std::nullopt;
  }
  return answer;
}

// For how long the candidate has had others to wait for.
double CandidateLink::spared_seconds() const {
  const SharedCrumb& crumb = *crumb_->get();
  const double since = crumb.compiling_since;
  return process_->queued_seconds() + crumb.compiled + (since > 0 ? monotonic_seconds() - since : 0);
}

// " in kernel `softmax`, line 12"
std::string CandidateLink::place() const {
  auto& crumb = *crumb_->get();
  std::string text;
  if (crumb.kernel[0] != '\0') {
    text = fmt::format(" in the generated kernel `{}`",
                       std::string(crumb.kernel, strnlen(crumb.kernel, sizeof(crumb.kernel))));
  }
  if (failure_.line > 0) text += fmt::format("{} line {}", text.empty() ? " at" : ", called at", failure_.line);
  return text;
}

void CandidateLink::explain_end() {
  auto& crumb = *crumb_->get();
  bool in_source = crumb.at.file == 0 && crumb.at.offset <= sources_.text(0).size();
  failure_ = {};
  failure_.line = in_source ? sources_.position(0, crumb.at.offset).line : 0;
  bool hung = process_->wire().trouble() == Wire::Trouble::timed_out;
  auto ending = process_->stop(hung ? 0 : 1);
  if (hung) {
    failure_.outcome = Outcome::timed_out;
    failure_.detail = fmt::format("the candidate did not finish within its time limit{}", place());
  } else if (ending.exit_code == kOutOfMemoryExit || ending.signal == SIGKILL) {
    failure_.outcome = Outcome::out_of_memory;
    failure_.detail = fmt::format("the candidate ran out of memory{}", place());
  } else if (ending.signal != 0) {
    failure_.outcome = Outcome::crashed;
    failure_.detail =
        fmt::format("the candidate crashed with signal {} ({}){}", ending.signal, strsignal(ending.signal), place());
  } else {
    failure_.outcome = ending.exit_code == 0 ? Outcome::worker_failed : Outcome::crashed;
    failure_.detail = fmt::format("the candidate's process ended with code {}{}", ending.exit_code, place());
  }
}

}  // namespace tilepilot::eval
