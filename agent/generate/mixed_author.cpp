#include "agent/generate/mixed_author.h"

#include <fmt/format.h>

#include "agent/generate/finalists.h"

namespace tilepilot::agent {
namespace {

class MixedAuthor final : public Author {
 public:
  MixedAuthor(std::unique_ptr<Author> first, std::function<Result<std::unique_ptr<Author>>()> make_second,
              MixedAuthorOptions options)
      : first_(std::move(first)), make_second_(std::move(make_second)), options_(std::move(options)) {}

  void allow(double seconds) override {
    seconds_ = seconds;
    if (second_) second_->allow(seconds);
  }
  Spending spending() const override { return second_ ? second_->spending() : first_->spending(); }
  Rest rest() const override { return second_ ? second_->rest() : rest_; }
  // The second author goes on from the best of the first.
  bool needs_ranking() const override { return true; }

  Result<std::optional<Candidate>> next(const std::vector<Attempt>& history) override {
    if (first_is_on_) {
      auto candidate = first_->next(history);
      if (candidate && *candidate) return candidate;
      if (!candidate) options_.progress(fmt::format("the author `builtin` stops: {}", candidate.error().message));
      first_is_on_ = false;
      if (!worth_more(history)) {
        rest_ = Rest::not_worth_it;
        return std::optional<Candidate>();
      }
      second_ = TRY(make_second_());
      second_->allow(seconds_);
    }
    if (!second_) return std::optional<Candidate>();
    return second_->next(history);
  }

 private:
  bool worth_more(const std::vector<Attempt>& history) const {
    const auto best = best_of(history);
    if (!best || !is_right(history[*best].told()) || options_.least_s <= 0 || !history[*best].told().candidate)
      return true;
    const double headroom = history[*best].told().candidate->median_us / (options_.least_s * 1e6);
    options_.progress(fmt::format("the best so far takes {:.2f} times the least that the roofline allows", headroom));
    if (headroom >= options_.least_headroom || options_.force) return true;
    options_.progress("asking the language model is not worth its cost (`--force` asks it all the same)");
    return false;
  }

  std::unique_ptr<Author> first_, second_;
  std::function<Result<std::unique_ptr<Author>>()> make_second_;
  MixedAuthorOptions options_;
  bool first_is_on_ = true;
  double seconds_ = 0;
  Rest rest_ = Rest::nothing_left;
};

}  // namespace

std::unique_ptr<Author> mixed_author(std::unique_ptr<Author> first,
                                     std::function<Result<std::unique_ptr<Author>>()> second,
                                     MixedAuthorOptions options) {
  return std::make_unique<MixedAuthor>(std::move(first), std::move(second), std::move(options));
}

}  // namespace tilepilot::agent
