#include "agent/generate/stored_author.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>

#include "agent/generate/generate.h"
#include "agent/store/corpus_entry.h"

namespace tilepilot::agent {
namespace {

bool was_tried(const std::vector<Attempt>& history, const std::string& source) {
  return std::any_of(history.begin(), history.end(),
                     [&](const Attempt& attempt) { return attempt.candidate.source == source; });
}

bool same_shapes(const std::vector<retrieval::TensorShape>& one, const std::vector<retrieval::TensorShape>& other) {
  return std::equal(one.begin(), one.end(), other.begin(), other.end(),
                    [](const auto& a, const auto& b) { return a.dtype == b.dtype && a.extents == b.extents; });
}

class StoredAuthor final : public Author {
 public:
  StoredAuthor(retrieval::Corpus& corpus, const eval::Reference& reference, std::string target)
      : corpus_(corpus), reference_(reference), target_(std::move(target)) {}

  Result<std::optional<Candidate>> next(const std::vector<Attempt>& history) override {
    if (!searched_) TRY(search());
    while (!found_.empty()) {
      const retrieval::Entry entry = std::move(found_.front());
      found_.pop_front();
      if (was_tried(history, entry.source)) continue;
      return std::optional(
          Candidate{entry.source, fmt::format("stored program `{}` of {}, {:.2f} times eager then: {}", entry.name,
                                              entry.created, entry.speedup, entry.summary)});
    }
    return std::optional<Candidate>();
  }

 private:
  Status search() {
    searched_ = true;
    retrieval::Query query{structure_of(reference_)};
    query.target = target_;
    query.count = 30;
    const std::string graph = retrieval::graph_fingerprint(query.structure);
    const auto inputs = input_shapes(reference_.forward);
    std::deque<retrieval::Entry> others;
    for (retrieval::Hit& hit : TRY(corpus_.search(query))) {
      retrieval::Entry& entry = hit.entry;
      if (graph.empty() || entry.graph != graph || entry.target != target_ || !same_shapes(entry.inputs, inputs))
        continue;
      if (entry.model_source == reference_.model_source)
        found_.push_back(std::move(entry));
      else if (reference_.parameters.empty())
        others.push_back(std::move(entry));
    }
    const auto is_faster = [](const auto& a, const auto& b) { return a.speedup > b.speedup; };
    std::stable_sort(found_.begin(), found_.end(), is_faster);
    std::stable_sort(others.begin(), others.end(), is_faster);
    std::move(others.begin(), others.end(), std::back_inserter(found_));
    constexpr size_t kMost = 2;
    if (found_.size() > kMost) found_.resize(kMost);
    return {};
  }

  retrieval::Corpus& corpus_;
  const eval::Reference& reference_;
  std::string target_;
  bool searched_ = false;
  std::deque<retrieval::Entry> found_;
};

class AuthorChain final : public Author {
 public:
  AuthorChain(std::unique_ptr<Author> first, std::unique_ptr<Author> second)
      : first_(std::move(first)), second_(std::move(second)) {}

  void allow(double seconds) override {
    first_->allow(seconds);
    second_->allow(seconds);
  }

  Result<std::optional<Candidate>> next(const std::vector<Attempt>& history) override {
    if (first_is_on_) {
      auto candidate = first_->next(history);
      if (candidate && *candidate) return candidate;
      first_is_on_ = false;
      if (!candidate) {
        auto other = second_->next(history);
        return other && *other ? std::move(other) : std::move(candidate);
      }
    }
    return second_->next(history);
  }

 private:
  std::unique_ptr<Author> first_, second_;
  bool first_is_on_ = true;
};

}  // namespace

std::unique_ptr<Author> stored_author(retrieval::Corpus& corpus, const eval::Reference& reference, std::string target) {
  return std::make_unique<StoredAuthor>(corpus, reference, std::move(target));
}

std::unique_ptr<Author> author_after(std::unique_ptr<Author> first, std::unique_ptr<Author> second) {
  return std::make_unique<AuthorChain>(std::move(first), std::move(second));
}

}  // namespace tilepilot::agent
