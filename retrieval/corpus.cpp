#include "retrieval/corpus.h"

#include <SQLiteCpp/SQLiteCpp.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <set>

#include "retrieval/corpus_rows.h"
#include "retrieval/database.h"
#include "retrieval/index/embedding.h"
#include "retrieval/index/stored_index.h"
#include "retrieval/ranking.h"
#include "retrieval/statement.h"

namespace tilepilot::retrieval {
namespace {

// Rows of the index that are compared exactly, whatever the count: the index is approximate where the corpus is large.
constexpr size_t kFewestCandidates = 100;

std::set<std::string> plain_operators(const Structure& structure) {
  std::set<std::string> plain;
  for (const std::string& op : structure.ops) plain.insert(plain_operator(op));
  return plain;
}

std::set<std::string> plain_edges(const Structure& structure) {
  std::set<std::string> plain;
  for (const auto& [from, to] : structure.edges) plain.insert(plain_operator(from) + " -> " + plain_operator(to));
  return plain;
}

std::vector<std::string> in_both(const std::set<std::string>& one, const std::set<std::string>& other) {
  std::vector<std::string> shared;
  std::set_intersection(one.begin(), one.end(), other.begin(), other.end(), std::back_inserter(shared));
  return shared;
}

// Why an entry fits: what it shares with the query, else which family of work.
std::string reason_for(const Structure& query, const Entry& entry, double structure_score, double text_score) {
  const auto shared = in_both(plain_operators(query), plain_operators(entry.structure));
  const auto edges = in_both(plain_edges(query), plain_edges(entry.structure));
  std::vector<std::string> parts;
  if (!shared.empty()) parts.push_back(fmt::format("shares {}", fmt::join(shared, ", ")));
  if (!edges.empty()) parts.push_back(fmt::format("in the order {}", fmt::join(edges, ", ")));
  if (shared.empty() && structure_score > 0) parts.push_back("does related work");
  if (text_score > 0.2) parts.push_back(fmt::format("its description matches ({:.2f})", text_score));
  if (!query.ops.empty()) parts.push_back(fmt::format("structure {:.2f}", structure_score));
  return fmt::format("{}", fmt::join(parts, "; "));
}

class SqliteCorpus final : public Corpus {
 public:
  SqliteCorpus(std::filesystem::path file, std::shared_ptr<SQLite::Database> database, const IndexOptions& options,
               bool read_only)
      : file_(std::move(file)), database_(std::move(database)), index_(file_, database_, options, read_only) {}

  Result<bool> add(const Entry& entry) override { return TRY(add_all({entry})) == 1; }

  Result<int64_t> add_all(const std::vector<Entry>& entries) override {
    std::vector<Entry> marked = entries;
    for (Entry& entry : marked) entry.fingerprint = TRY(fingerprint(entry.source));
    try {
      // Seeds are offered at every start: who has them need not wait for others that write.
      std::erase_if(marked, [&](const Entry& entry) { return is_there(*database_, entry.fingerprint, entry.target); });
      if (marked.empty()) return int64_t{0};
      int64_t added = 0;
      SQLite::Transaction transaction(*database_, SQLite::TransactionBehavior::IMMEDIATE);
      for (const Entry& entry : marked) added += insert_entry(*database_, entry) ? 1 : 0;
      transaction.commit();
      return added;
    } catch (const std::exception& exception) { return database_error(file_, exception); }
  }

  Result<std::vector<Entry>> list() override {
    return select(fmt::format("SELECT {} FROM corpus ORDER BY id", kEntryColumns));
  }

  Result<std::optional<Entry>> find(const std::string& id_or_name) override {
    int64_t id = 0;
    auto [end, error] = std::from_chars(id_or_name.data(), id_or_name.data() + id_or_name.size(), id);
    bool is_id = error == std::errc() && end == id_or_name.data() + id_or_name.size();
    auto found = TRY(select(fmt::format("SELECT {} FROM corpus WHERE {} = ? ORDER BY id DESC LIMIT 1", kEntryColumns,
                                        is_id ? "id" : "name"),
                            id_or_name));
    if (found.empty()) return std::optional<Entry>();
    return std::optional<Entry>(std::move(found.front()));
  }

  Result<std::vector<Hit>> search(const Query& query) override {
    if (query.count <= 0) return std::vector<Hit>();
    const QueryVectors vectors(query);
    const auto count = static_cast<size_t>(query.count);
    try {
      // Of what the index gives, some may be in quarantine or run elsewhere only: then it is asked for more.
      for (size_t wanted = std::max(kFewestCandidates, 4 * count);; wanted *= 4) {
        auto rows = index_.candidates(vectors.weighed, wanted);
        std::sort(rows.begin(), rows.end());      // as they lie in the file
        SQLite::Transaction reading(*database_);  // else every row takes a lock of the file
        const auto ranked = rank(*database_, query, vectors, rows);
        if (ranked.size() >= count || rows.size() < wanted) return hits(query, ranked);
      }
    } catch (const std::exception& exception) { return database_error(file_, exception); }
  }

  Status record_proof(int64_t id, const Proof& proof) override {
    if (proof.holds)
      return execute(
          *database_, file_,
          fmt::format("UPDATE corpus SET quarantined = NULL, verified = {}, toolchain = ? WHERE id = ?", kNow),
          proof.toolchain, id);
    return execute(*database_, file_, "UPDATE corpus SET quarantined = ?, toolchain = ? WHERE id = ?", proof.why,
                   proof.toolchain, id);
  }

  Result<IndexState> update_index(bool anew) override {
    try {
      TRY(index_.update(anew));
      return index_.state();
    } catch (const std::exception& exception) { return database_error(file_, exception); }
  }

 private:
  template <class... Values>
  Result<std::vector<Entry>> select(const std::string& sql, const Values&... values) {
    try {
      SQLite::Statement query(*database_, sql);
      bind_all(query, values...);
      std::vector<Entry> entries;
      while (query.executeStep()) entries.push_back(entry_in(query));
      return entries;
    } catch (const std::exception& exception) { return database_error(file_, exception); }
  }

  std::vector<Hit> hits(const Query& query, const std::vector<Ranked>& ranked) {
    SQLite::Statement row(*database_, fmt::format("SELECT {} FROM corpus WHERE id = ?", kEntryColumns));
    std::vector<Hit> found;
    for (const Ranked& each : ranked) {
      row.reset();
      row.bind(1, each.entry);
      if (!row.executeStep()) continue;
      Entry entry = entry_in(row);
      std::string reason = reason_for(query.structure, entry, each.structure, each.text);
      found.push_back({std::move(entry), std::min(1.0, each.score), std::move(reason)});
    }
    return found;
  }

  std::filesystem::path file_;
  std::shared_ptr<SQLite::Database> database_;
  StoredIndex index_;
};

}  // namespace

Result<std::unique_ptr<Corpus>> open_corpus(const std::filesystem::path& file, bool read_only,
                                            const IndexOptions& options) {
  auto database = TRY(open_database(file, read_only));
  try {
    if (has_unembedded(*database)) {
      if (read_only) database = TRY(open_copy(file));
      embed_rows(*database);
    }
  } catch (const std::exception& exception) { return database_error(file, exception); }
  return std::make_unique<SqliteCorpus>(file, std::move(database), options, read_only);
}

}  // namespace tilepilot::retrieval
