#include "agent/builtin/builtin_author.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <set>

#include "agent/builtin/gpu_tiles.h"
#include "agent/builtin/plan.h"
#include "agent/builtin/writer/program_writer.h"

namespace tilepilot::agent {

namespace {

using builtin::Plan;
using builtin::PlanOptions;

// The inner length up to which writing the product once may pay. Kernels of a GPU multiply as fast as its library.
int64_t worthwhile_depth(const PlanOptions& options) {
  constexpr int64_t kShallowProduct = 1024;
  return options.tiles.gpu ? std::numeric_limits<int64_t>::max() : kShallowProduct;
}

// A way to change the plan once the first one runs. Each is tried once, on top of the fastest plan so far.
struct Variation {
  std::string_view summary;
  // False: there is nothing to change in this plan.
  bool (*apply)(const Plan& plan, PlanOptions& options);
};

constexpr Variation kVariations[] = {
    {"leaves the products of matrices to PyTorch",
     [](const Plan& plan, PlanOptions& options) {
       options.deepest_product = 0;
       options.float32_products = false;
       return options.tiles.gpu && plan.has_products;
     }},
    {"computes matrix products inside the kernels that finish them",
     [](const Plan& plan, PlanOptions& options) {
       options.deepest_product = worthwhile_depth(options);
       return plan.shallowest_product > 0 && plan.shallowest_product <= options.deepest_product;
     }},
    {"computes products with a bias in kernels too",
     [](const Plan&, PlanOptions& options) {
       options.bias_only = true;
       options.deepest_product = worthwhile_depth(options);
       return true;
     }},
    {"takes smaller tiles",
     [](const Plan&, PlanOptions& options) {
       options.tiles.elements /= 4;
       return !options.tiles.gpu;
     }},
    {"takes the tiles that come second in the model of the GPU",
     [](const Plan&, PlanOptions& options) {
       options.tiles.choice = 1;
       return options.tiles.gpu.has_value();
     }},
};

struct Proposal {
  PlanOptions options;
  Plan plan;
  Candidate candidate;
};

bool is_faster(const Attempt& attempt, const Attempt& other) {
  return attempt.verdict.speedup() > other.verdict.speedup();
}

class BuiltinAuthor : public Author {
 public:
  BuiltinAuthor(eval::Reference reference, BuiltinOptions options)
      : reference_(std::move(reference)), options_(std::move(options)) {}

  Result<std::optional<Candidate>> next(const std::vector<Attempt>& history) override {
    if (static_cast<int>(history.size()) >= options_.candidates) return std::optional<Candidate>();
    if (history.empty()) return first();
    if (history.size() > proposals_.size()) return std::optional<Candidate>();
    if (history.back().verdict.outcome != eval::Outcome::verified) return repair(history);
    return vary(history);
  }

 private:
  eval::Reference reference_;
  BuiltinOptions options_;
  std::vector<Proposal> proposals_;  // as many as were handed out
  size_t next_variation_ = 0, next_left_out_ = 0;

  // Small models get kernels below the usual size, models of bare products get those.
  Result<std::optional<Candidate>> first() {
    PlanOptions options;
    options.tiles.gpu = builtin::gpu_of(options_.target);
    if (options.tiles.gpu) {
      options.deepest_product = worthwhile_depth(options);
      options.float32_products = true;
    }
    auto candidate = TRY(propose(options, "fuses all it can"));
    if (candidate) return candidate;
    options.smallest_kernel = 1;
    candidate = TRY(propose(options, "fuses all it can, though it is little"));
    if (candidate) return candidate;
    options.bias_only = options.lone_products = true;
    options.deepest_product = std::numeric_limits<int64_t>::max();
    return propose(options, "computes the matrix products in kernels");
  }

  // nullopt: the plan has no kernels, or its program was already proposed.
  Result<std::optional<Candidate>> propose(const PlanOptions& options, const std::string& summary) {
    Plan plan = TRY(builtin::make_plan(reference_, options));
    if (plan.kernels.empty()) return std::optional<Candidate>();
    Candidate candidate{TRY(builtin::write_program(reference_, plan)), summary};
    for (auto& proposal : proposals_)
      if (proposal.candidate.source == candidate.source) return std::optional<Candidate>();
    proposals_.push_back({options, std::move(plan), candidate});
    return std::optional<Candidate>(std::move(candidate));
  }

  // A plan that failed is tried again without the kernel to blame; a variation that failed is given up.
  Result<std::optional<Candidate>> repair(const std::vector<Attempt>& history) {
    bool any_verified = std::any_of(history.begin(), history.end(),
                                    [](auto& attempt) { return attempt.verdict.outcome == eval::Outcome::verified; });
    if (any_verified) return vary(history);
    const Proposal& failed = proposals_[history.size() - 1];
    const builtin::PlannedKernel& blamed = failed.plan.kernels[blamed_kernel(failed, history.back().verdict)];
    return propose(without(failed, blamed), fmt::format("leaves `{}` to PyTorch", blamed.name));
  }

  // A kernel's text from its parameters to its last statement: the program calls it after its factory.
  static std::string without_name(const std::string& body) {
    const size_t begin = body.find("def main(") + std::string_view("def main").size();
    return body.substr(begin, body.rfind("\n    return main") - begin);
  }

  // The kernel that the verdict's line lies in, else the one with most in it.
  static size_t blamed_kernel(const Proposal& proposal, const eval::Verdict& verdict) {
    size_t largest = 0;
    auto& kernels = proposal.plan.kernels;
    for (size_t i = 0; i < kernels.size(); ++i) {
      const std::string body = without_name(kernels[i].text.body);
      size_t at = proposal.candidate.source.find(body);
      if (verdict.line > 0 && at != std::string::npos) {
        auto line_of = [&](size_t offset) {
          auto& source = proposal.candidate.source;
          return 1 + std::count(source.begin(), source.begin() + static_cast<std::ptrdiff_t>(offset), '\n');
        };
        if (line_of(at) - 2 <= verdict.line && verdict.line <= line_of(at + body.size()) + 2) return i;
      }
      if (kernels[i].group.members.size() > kernels[largest].group.members.size()) largest = i;
    }
    return largest;
  }

  Result<std::optional<Candidate>> vary(const std::vector<Attempt>& history) {
    size_t best = 0;
    for (size_t i = 1; i < history.size(); ++i)
      if (is_faster(history[i], history[best])) best = i;
    while (next_variation_ < std::size(kVariations)) {
      const Variation& variation = kVariations[next_variation_++];
      PlanOptions options = proposals_[best].options;
      if (!variation.apply(proposals_[best].plan, options)) continue;
      auto candidate = TRY(propose(options, std::string(variation.summary)));
      if (candidate) return candidate;
    }
    return leave_one_out(best, history[best].verdict.speedup());
  }

  // While the best is slower than eager, some kernel of it must be: each is left out in turn.
  Result<std::optional<Candidate>> leave_one_out(size_t best, double speedup) {
    const Proposal proposal = proposals_[best];
    while (speedup < 1 && next_left_out_ < proposal.plan.kernels.size()) {
      const builtin::PlannedKernel& kernel = proposal.plan.kernels[next_left_out_++];
      auto candidate = TRY(propose(without(proposal, kernel), fmt::format("leaves `{}` to PyTorch", kernel.name)));
      if (candidate) return candidate;
    }
    return std::optional<Candidate>();
  }

  static PlanOptions without(const Proposal& proposal, const builtin::PlannedKernel& kernel) {
    PlanOptions options = proposal.options;
    for (int id : kernel.group.members) options.calls.insert(proposal.plan.graph.at(id).origin);
    options.calls.erase(-1);
    return options;
  }
};

}  // namespace

std::unique_ptr<Author> builtin_author(eval::Reference reference, BuiltinOptions options) {
  return std::make_unique<BuiltinAuthor>(std::move(reference), std::move(options));
}

}  // namespace tilepilot::agent
