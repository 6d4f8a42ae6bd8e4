#include "retrieval/ranking.h"

#include <algorithm>

#include "retrieval/index/sparse_vector.h"
#include "retrieval/target_fit.h"

namespace tilepilot::retrieval {
namespace {

// Structure decides, words break ties; a search by words alone uses words alone.
constexpr float kStructureShare = 0.8f;
// Entries of one structure whose words are compared.
constexpr int64_t kMostByWords = 200;

std::string_view blob_in(const SQLite::Column& column) {
  return {static_cast<const char*>(column.getBlob()), static_cast<size_t>(column.getBytes())};
}

// A row with all that have its structure.
struct Group {
  int64_t row = 0;
  double structure = 0;  // score
};

struct Member {
  Ranked ranked;
  std::string needs;  // of a target
};

bool is_before(const Member& a, const Member& b) {
  return a.ranked.score != b.ranked.score ? a.ranked.score > b.ranked.score : a.ranked.entry < b.ranked.entry;
}

// Takes what fits until there is enough.
class FirstThatFit {
 public:
  FirstThatFit(SQLite::Database& database, const Query& query)
      : query_(query),
        row_(database, "SELECT fingerprint, target FROM corpus WHERE id = ? AND quarantined IS NULL"),
        others_(database, "SELECT id, target FROM corpus WHERE fingerprint = ? AND quarantined IS NULL") {}

  bool is_full() const { return taken_.size() >= static_cast<size_t>(query_.count); }

  void offer(Member member) {
    row_.reset();
    row_.bind(1, member.ranked.entry);
    if (!row_.executeStep()) return;  // in quarantine
    const std::string print = row_.getColumn(0).getString();
    double fit = target_fit(row_.getColumn(1).getText(), member.needs, query_.target);
    if (fit <= 0 || !seen_.insert(print).second) return;
    // What was verified for the target itself says more than what came first.
    others_.reset();
    if (fit < 1) others_.bind(1, print);
    while (fit < 1 && others_.executeStep()) {
      const double other = target_fit(others_.getColumn(1).getText(), member.needs, query_.target);
      if (other <= fit) continue;
      fit = other;
      member.ranked.entry = others_.getColumn(0).getInt64();
    }
    taken_.push_back(member.ranked);
  }

  std::vector<Ranked> taken() { return std::move(taken_); }

 private:
  const Query& query_;
  SQLite::Statement row_, others_;
  std::set<std::string> seen_;  // fingerprints of programs
  std::vector<Ranked> taken_;
};

class Ranking {
 public:
  Ranking(SQLite::Database& database, const Query& query, const QueryVectors& vectors)
      : query_(query),
        vectors_(vectors),
        first_(database, "SELECT entry, needs, words FROM embedding WHERE seq = ?"),
        twins_(database, "SELECT entry, needs, words FROM embedding WHERE twin = ? ORDER BY seq LIMIT ?"),
        fit_(database, query) {}

  std::vector<Ranked> run(const std::vector<Group>& groups) {
    std::vector<Member> members;
    const bool by_words = !query_.text.empty();
    for (const Group& group : groups) {
      if (fit_.is_full()) break;
      const auto visit = [&](Member member) {
        if (!by_words) {
          fit_.offer(std::move(member));
        } else if (member.ranked.score > 0) {
          members.push_back(std::move(member));
        }
        return !fit_.is_full();
      };
      for_each_member(group, by_words ? kMostByWords : -1, visit);
    }
    std::sort(members.begin(), members.end(), is_before);
    for (Member& member : members)
      if (!fit_.is_full()) fit_.offer(std::move(member));
    return fit_.taken();
  }

 private:
  // The oldest first. `visit` says whether to go on.
  template <class Visit>
  void for_each_member(const Group& group, int64_t most, Visit visit) {
    first_.reset();
    first_.bind(1, group.row);
    if (first_.executeStep() && !visit(member_in(first_, group))) return;
    twins_.reset();
    twins_.bind(1, group.row);
    twins_.bind(2, most);
    while (twins_.executeStep())
      if (!visit(member_in(twins_, group))) return;
  }

  Member member_in(SQLite::Statement& row, const Group& group) const {
    Member member{{row.getColumn(0).getInt64(), 0, group.structure, 0}, row.getColumn(1).getString()};
    if (!query_.text.empty()) member.ranked.text = inner_product(blob_in(row.getColumn(2)), vectors_.text);
    member.ranked.score = double{vectors_.share} * group.structure + (1 - double{vectors_.share}) * member.ranked.text;
    return member;
  }

  const Query& query_;
  const QueryVectors& vectors_;
  SQLite::Statement first_, twins_;
  FirstThatFit fit_;
};

}  // namespace

QueryVectors::QueryVectors(const Query& query)
    : structure(embed(query.structure)),
      text(embed_text(query.text)),
      share(query.structure.ops.empty() ? 0.0f
            : query.text.empty()        ? 1.0f
                                        : kStructureShare) {
  weighed.structure = structure;
  weighed.text = text;
  for (float& x : weighed.structure) x *= share;
  for (float& x : weighed.text) x *= 1 - share;
}

std::vector<Ranked> rank(SQLite::Database& database, const Query& query, const QueryVectors& vectors,
                         const std::vector<int64_t>& rows) {
  SQLite::Statement row(database, "SELECT structure FROM embedding WHERE seq = ?");
  std::vector<Group> groups;
  for (int64_t number : rows) {
    row.reset();
    row.bind(1, number);
    if (!row.executeStep()) continue;  // it is gone
    const double score = inner_product(blob_in(row.getColumn(0)), vectors.structure);
    if (query.exclude_near > 0 && 1 - score < query.exclude_near) continue;
    if (score > 0 || !query.text.empty()) groups.push_back({number, score});
  }
  std::sort(groups.begin(), groups.end(), [](const Group& a, const Group& b) {
    return a.structure != b.structure ? a.structure > b.structure : a.row < b.row;
  });
  return Ranking(database, query, vectors).run(groups);
}

}  // namespace tilepilot::retrieval
