#include "retrieval/corpus.h"

#include <SQLiteCpp/SQLiteCpp.h>
#include <faiss/IndexFlat.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>
#include <numeric>
#include <set>

#include "retrieval/database.h"
#include "retrieval/embedding.h"

namespace tilepilot::retrieval {
namespace {

using nlohmann::json;

// Structure decides, words break ties; a search by words alone uses words alone.
constexpr float kStructureShare = 0.8f;

json to_json(const Structure& structure) {
  return {{"ops", structure.ops},
          {"edges", structure.edges},
          {"dtype", structure.dtype},
          {"largest_elements", structure.largest_elements}};
}

Structure structure_from(const std::string& text) {
  json object = json::parse(text);
  return {object.at("ops"), object.at("edges"), object.at("dtype"), object.at("largest_elements")};
}

constexpr const char* kColumns =
    "id, name, origin, summary, tags, structure, source, fingerprint, speedup, target, created";

Entry entry_from(SQLite::Statement& row) {
  Entry entry;
  entry.id = row.getColumn(0).getInt64();
  entry.name = row.getColumn(1).getString();
  entry.origin = row.getColumn(2).getString();
  entry.summary = row.getColumn(3).getString();
  entry.tags = json::parse(row.getColumn(4).getString());
  entry.structure = structure_from(row.getColumn(5).getString());
  entry.source = row.getColumn(6).getString();
  entry.fingerprint = row.getColumn(7).getString();
  entry.speedup = row.getColumn(8).getDouble();
  entry.target = row.getColumn(9).getString();
  entry.created = row.getColumn(10).getString();
  return entry;
}

std::set<std::string> plain_operators(const Structure& structure) {
  std::set<std::string> plain;
  for (const std::string& op : structure.ops) plain.insert(plain_operator(op));
  return plain;
}

std::string text_of(const Entry& entry) {
  return fmt::format("{} {} {}", entry.name, entry.summary, fmt::join(entry.tags, " "));
}

// Why an entry fits: what it shares with the query, else which family of work.
std::string reason_for(const Structure& query, const Entry& entry, float structure_score, float text_score) {
  auto wanted = plain_operators(query), has = plain_operators(entry.structure);
  std::vector<std::string> shared, edges;
  std::set_intersection(wanted.begin(), wanted.end(), has.begin(), has.end(), std::back_inserter(shared));
  for (const auto& [from, to] : query.edges)
    for (const auto& [other_from, other_to] : entry.structure.edges)
      if (plain_operator(from) == plain_operator(other_from) && plain_operator(to) == plain_operator(other_to))
        edges.push_back(plain_operator(from) + " -> " + plain_operator(to));
  std::sort(edges.begin(), edges.end());
  edges.erase(std::unique(edges.begin(), edges.end()), edges.end());
  std::vector<std::string> parts;
  if (!shared.empty()) parts.push_back(fmt::format("shares {}", fmt::join(shared, ", ")));
  if (!edges.empty()) parts.push_back(fmt::format("in the order {}", fmt::join(edges, ", ")));
  if (shared.empty() && structure_score > 0) parts.push_back("does related work");
  if (text_score > 0.2f) parts.push_back(fmt::format("its description matches ({:.2f})", text_score));
  if (!query.ops.empty()) parts.push_back(fmt::format("structure {:.2f}", structure_score));
  return fmt::format("{}", fmt::join(parts, "; "));
}

class SqliteCorpus final : public Corpus {
 public:
  SqliteCorpus(std::filesystem::path file, std::shared_ptr<SQLite::Database> database)
      : file_(std::move(file)), database_(std::move(database)) {}

  Result<bool> add(const Entry& entry) override {
    std::string print = TRY(fingerprint(entry.source));
    try {
      SQLite::Statement insert(
          *database_,
          "INSERT INTO corpus (name, origin, summary, tags, structure, source, fingerprint, speedup, target, "
          "created) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, strftime('%Y-%m-%dT%H:%M:%SZ', 'now')) "
          "ON CONFLICT (fingerprint, target) DO NOTHING");
      insert.bind(1, entry.name);
      insert.bind(2, entry.origin);
      insert.bind(3, entry.summary);
      insert.bind(4, json(entry.tags).dump());
      insert.bind(5, to_json(entry.structure).dump());
      insert.bind(6, entry.source);
      insert.bind(7, print);
      insert.bind(8, entry.speedup);
      insert.bind(9, entry.target);
      return insert.exec() == 1;
    } catch (const std::exception& exception) { return database_error(file_, exception); }
  }

  Result<std::vector<Entry>> list() override {
    return select(fmt::format("SELECT {} FROM corpus ORDER BY id", kColumns));
  }

  Result<std::optional<Entry>> find(const std::string& id_or_name) override {
    int64_t id = 0;
    auto [end, error] = std::from_chars(id_or_name.data(), id_or_name.data() + id_or_name.size(), id);
    bool is_id = error == std::errc() && end == id_or_name.data() + id_or_name.size();
    auto found = TRY(select(
        fmt::format("SELECT {} FROM corpus WHERE {} = ? ORDER BY id DESC LIMIT 1", kColumns, is_id ? "id" : "name"),
        id_or_name));
    if (found.empty()) return std::optional<Entry>();
    return std::optional<Entry>(std::move(found.front()));
  }

  Result<std::vector<Hit>> search(const Structure& structure, const std::string& text, int count) override {
    std::vector<Entry> entries = TRY(list());
    if (entries.empty() || count <= 0) return std::vector<Hit>();
    StructureVector structure_query = embed(structure);
    TextVector text_query = embed_text(text);
    const float share = structure.ops.empty() ? 0.0f : text.empty() ? 1.0f : kStructureShare;
    faiss::IndexFlatIP index(kStructureDimensions + kTextDimensions);
    std::vector<float> row(static_cast<size_t>(index.d));
    for (const Entry& entry : entries) {
      StructureVector structure_vector = embed(entry.structure);
      TextVector text_vector = embed_text(text_of(entry));
      std::copy(structure_vector.begin(), structure_vector.end(), row.begin());
      std::copy(text_vector.begin(), text_vector.end(), row.begin() + kStructureDimensions);
      index.add(1, row.data());
    }
    // The shares weigh the query; the inner product is then the weighted sum of both cosines.
    for (int i = 0; i < kStructureDimensions; ++i)
      row[static_cast<size_t>(i)] = share * structure_query[static_cast<size_t>(i)];
    for (int i = 0; i < kTextDimensions; ++i)
      row[static_cast<size_t>(kStructureDimensions + i)] = (1 - share) * text_query[static_cast<size_t>(i)];
    std::vector<float> scores(entries.size());
    std::vector<int64_t> ids(entries.size());
    index.search(1, row.data(), index.ntotal, scores.data(), ids.data());
    return hits(structure, text_query, entries, scores, ids, static_cast<size_t>(count));
  }

 private:
  template <class... Values>
  Result<std::vector<Entry>> select(const std::string& sql, const Values&... values) {
    try {
      SQLite::Statement query(*database_, sql);
      int column = 0;
      (query.bind(++column, values), ...);
      std::vector<Entry> entries;
      while (query.executeStep()) entries.push_back(entry_from(query));
      return entries;
    } catch (const std::exception& exception) { return database_error(file_, exception); }
  }

  static std::vector<Hit> hits(const Structure& structure, const TextVector& text_query,
                               const std::vector<Entry>& entries, const std::vector<float>& scores,
                               const std::vector<int64_t>& ids, size_t most) {
    std::vector<Hit> found;
    StructureVector query = embed(structure);
    std::set<std::string> seen;
    for (size_t rank = 0; rank < ids.size() && found.size() < most; ++rank) {
      if (ids[rank] < 0 || scores[rank] <= 0) continue;
      const Entry& entry = entries[static_cast<size_t>(ids[rank])];
      if (!seen.insert(entry.fingerprint).second) continue;
      StructureVector structure_vector = embed(entry.structure);
      TextVector text_vector = embed_text(text_of(entry));
      float structure_score = std::inner_product(query.begin(), query.end(), structure_vector.begin(), 0.0f);
      float text_score = std::inner_product(text_query.begin(), text_query.end(), text_vector.begin(), 0.0f);
      found.push_back(
          {entry, std::min(1.0, double{scores[rank]}), reason_for(structure, entry, structure_score, text_score)});
    }
    return found;
  }

  std::filesystem::path file_;
  std::shared_ptr<SQLite::Database> database_;
};

}  // namespace

Result<std::unique_ptr<Corpus>> open_corpus(const std::filesystem::path& file, bool read_only) {
  auto database = TRY(open_database(file, read_only));
  return std::make_unique<SqliteCorpus>(file, std::move(database));
}

}  // namespace tilepilot::retrieval
