#include "agent/builtin/builtin_author.h"

#include <fmt/format.h>

#include <algorithm>

#include "agent/builtin/plan.h"
#include "agent/builtin/program_writer.h"

namespace tilepilot::agent {

namespace {

using builtin::Plan;
using builtin::PlanOptions;

class BuiltinAuthor : public Author {
 public:
  BuiltinAuthor(const eval::Reference& reference, BuiltinOptions options) : reference_(reference), options_(options) {}

  std::string_view name() const override { return "builtin"; }

  Result<std::optional<Candidate>> next(const std::vector<Attempt>& history) override {
    if (static_cast<int>(history.size()) >= options_.candidates) return std::optional<Candidate>();
    if (history.empty()) return candidate({}, "fuses all it can");
    return std::optional<Candidate>();
  }

 private:
  const eval::Reference& reference_;
  BuiltinOptions options_;

  Result<std::optional<Candidate>> candidate(const PlanOptions& options, const std::string& summary) {
    Plan plan = TRY(builtin::make_plan(reference_, options));
    if (plan.kernels.empty()) return std::optional<Candidate>();
    return std::optional<Candidate>({TRY(builtin::write_program(reference_, plan)), summary});
  }
};

}  // namespace

std::unique_ptr<Author> builtin_author(const eval::Reference& reference, BuiltinOptions options) {
  return std::make_unique<BuiltinAuthor>(reference, options);
}

}  // namespace tilepilot::agent
