#include "eval/worker/judge/candidate_link.h"

#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "compiler/untrusted/printable.h"
#include "eval/process/candidate_answer.h"
#include "eval/worker/candidate/candidate_process.h"

namespace tilepilot::eval {
namespace {

constexpr uint64_t kMaxAnswer = uint64_t{1} << 26;  // tensors travel beside it

Result<std::unique_ptr<WorkerProcess>> start_anew(const CandidateLaunch& launch, std::vector<int> descriptors,
                                                  const OutputTap& output) {
  return WorkerProcess::start({.executable = launch.executable,
                               .role = kCandidate,
                               .threads = launch.threads,
                               .descriptors = std::move(descriptors),
                               .dies_with_thread = true,
                               .in_namespaces = launch.gpu == nullptr,
                               .output = output.write_end()});
}

}  // namespace

Result<std::unique_ptr<CandidateLink>> CandidateLink::start(const CandidateLaunch& launch) {
  auto link = std::unique_ptr<CandidateLink>(new CandidateLink);
  link->sources_.add(launch.name, launch.source);
  link->gpu_ = launch.gpu;
  link->device_ = launch.device;
  link->most_bytes_ = launch.most_bytes;
  link->marker_ = std::make_unique<CrashMarkerPage>();
  if (!link->marker_->get()) {
    return make_error(DiagnosticKind::worker_unavailable, {}, "there is no memory for a candidate's process");
  }
  const Descriptor compiler =
      launch.broker ? launch.broker->connect({launch.cache, launch.cuda_folders}) : Descriptor();
  std::vector<int> descriptors = {link->marker_->descriptor()};
  if (compiler.number() >= 0) descriptors.push_back(compiler.number());
  link->output_ = std::make_unique<OutputTap>(STDERR_FILENO);
  // LibTorch and the driver promise nothing of CUDA in a process that was forked after they were loaded.
  if (launch.fork_server && !launch.gpu)
    link->process_ = launch.fork_server->fork(descriptors, link->output_->write_end());
  if (!link->process_) link->process_ = TRY(start_anew(launch, std::move(descriptors), *link->output_));
  link->output_->close_write_end();
  link->process_->wire().limit_body(kMaxAnswer);
  return link;
}

std::optional<Message> CandidateLink::ask(const nlohmann::json& request) { return exchange(request, {}); }

std::optional<Message> CandidateLink::ask(const nlohmann::json& request, const std::vector<at::Tensor>& tensors) {
  auto packed = pack_tensors(tensors, tensor_transfer(Direction::to_candidate));
  if (packed.ok()) return ask(request, *packed);
  failure_.outcome = Outcome::worker_failed;
  failure_.detail = packed.error().message;
  return std::nullopt;
}

std::optional<Message> CandidateLink::ask(const nlohmann::json& request, const PackedTensors& tensors) {
  nlohmann::json body = request;
  body["tensors"] = tensors.description;
  return exchange(body, tensors.descriptors());
}

Result<std::vector<at::Tensor>> CandidateLink::tensors_of(const Message& answer) const {
  return unpack_tensors(answer.body.at("tensors"), answer.descriptors, tensor_transfer(Direction::from_candidate));
}

std::optional<Message> CandidateLink::exchange(const nlohmann::json& body, const std::vector<int>& descriptors) {
  constexpr double kShortest = 1e-3;
  const double begin = monotonic_seconds(), spared = spared_seconds(), left = left_;
  const auto elapsed = [&] { return monotonic_seconds() - begin; };
  const auto patience = [&] { return kPatience * limit_ - elapsed(); };
  bool arrives = false;
  if (process_->wire().send(body, descriptors, limit_)) {
    do {
      arrives = process_->wire().await(std::clamp(left_, kShortest, std::max(patience(), kShortest)));
      left_ = left - elapsed() + std::clamp(spared_seconds() - spared, 0.0, elapsed());
    } while (!arrives && left_ > 0 && patience() > 0);
  }
  auto answer = process_->wire().receive(arrives ? limit_ : kShortest);
  request_seconds_ = elapsed();
  seconds_ += request_seconds_;
  if (!answer) {
    explain_end();
    return std::nullopt;
  }
  if (const auto fault = fault_of_answer(answer->body, answer->descriptors.size())) return refuse(*fault);
  if (answer->body.contains("failure")) {
    failure_ = told_failure(answer->body["failure"], sources_);
    return std::nullopt;
  }
  return answer;
}

std::optional<Message> CandidateLink::refuse(std::string_view fault) {
  process_->stop();
  ended_ = true;
  failure_ = protocol_failure(fault);
  return std::nullopt;
}

void CandidateLink::add_warnings(const nlohmann::json& warnings, Verdict& verdict) const {
  add_told_warnings(warnings, sources_, verdict);
}

CandidateLink::Usage CandidateLink::usage() const { return {process_->cpu_seconds(), request_seconds_}; }

// For how long the candidate has had others to wait for.
double CandidateLink::spared_seconds() const {
  const CrashMarker& marker = *marker_->get();  // which the process may fill with anything
  const double since = marker.compiling_since, compiled = marker.compiled, now = monotonic_seconds();
  const double compiling = compiled + (since > 0 && since < now ? now - since : 0);
  return process_->queued_seconds() + (std::isfinite(compiling) ? compiling : 0);
}

double CandidateLink::compiling_seconds() const {
  const double compiled = marker_->get()->compiled;
  return std::isfinite(compiled) ? std::clamp(compiled, 0.0, seconds_) : 0;
}

// " in kernel `softmax`, line 12"
std::string CandidateLink::place() const {
  auto& marker = *marker_->get();
  std::string text;
  if (marker.kernel[0] != '\0') {
    text = fmt::format(" in the generated kernel `{}`",
                       printable({marker.kernel, strnlen(marker.kernel, sizeof(marker.kernel))}));
  }
  if (failure_.line > 0) text += fmt::format("{} line {}", text.empty() ? " at" : ", called at", failure_.line);
  return text;
}

void CandidateLink::explain_end() {
  const stage::StatementMarker at = marker_->get()->at;
  bool in_source = at.file == 0 && at.offset <= sources_.text(0).size();
  failure_ = {};
  ended_ = true;
  failure_.line = in_source ? sources_.position(0, at.offset).line : 0;
  if (process_->wire().trouble() == Wire::Trouble::malformed) {
    refuse("it is no message");
    return;
  }
  bool hung = process_->wire().trouble() == Wire::Trouble::timed_out;
  auto ending = process_->stop(hung ? 0 : 1);
  if (hung) {
    failure_.outcome = Outcome::timed_out;
    failure_.detail = fmt::format("the candidate did not finish within its time limit{}", place());
  } else if (ending.exit_code == kOutOfMemoryExit || ending.signal == SIGKILL) {
    failure_.outcome = Outcome::out_of_memory;
    failure_.detail = fmt::format("the candidate ran out of memory{}", place());
  } else if (ending.signal != 0 || ending.exit_code == kAbortedExit) {
    const int signal = ending.signal != 0 ? ending.signal : SIGABRT;
    failure_.outcome = Outcome::crashed;
    failure_.detail = fmt::format("the candidate crashed with signal {} ({}){}", signal, strsignal(signal), place());
  } else {
    failure_.outcome = ending.exit_code == 0 ? Outcome::worker_failed : Outcome::crashed;
    failure_.detail = fmt::format("the candidate's process ended with code {}{}", ending.exit_code, place());
  }
}

}  // namespace tilepilot::eval
