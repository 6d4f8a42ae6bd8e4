#include "retrieval/corpus_rows.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>

#include "retrieval/index/embedding.h"
#include "retrieval/index/sparse_vector.h"
#include "retrieval/statement.h"
#include "retrieval/target_fit.h"

namespace tilepilot::retrieval {
namespace {

using nlohmann::json;

constexpr int kRowsOfTransaction = 5'000;

json to_json(const Structure& structure) {
  json object = {{"ops", structure.ops},
                 {"edges", structure.edges},
                 {"dtype", structure.dtype},
                 {"largest_elements", structure.largest_elements}};
  if (!structure.links.empty()) object["links"] = structure.links;
  return object;
}

Structure structure_from(const std::string& text) {
  const json object = json::parse(text);
  Structure structure{object.at("ops"), object.at("edges"), object.at("dtype"), object.at("largest_elements"), {}};
  if (object.contains("links")) object["links"].get_to(structure.links);
  return structure;
}

std::vector<TensorShape> shapes_in(const json& object, const char* key) {
  return object.contains(key) ? shapes_from(object.at(key)) : std::vector<TensorShape>();
}

void bind_blob(SQLite::Statement& statement, int column, const std::string& bytes) {
  statement.bind(column, static_cast<const void*>(bytes.data()), static_cast<int>(bytes.size()));
}

void insert_embedding(SQLite::Database& database, int64_t id, const Entry& entry) {
  SQLite::Statement insert(database,
                           "INSERT INTO embedding (entry, needs, structure, words, twin) VALUES (?1, ?2, ?3, ?4, "
                           "(SELECT seq FROM embedding WHERE structure = ?3 AND twin IS NULL))");
  insert.bind(1, id);
  insert.bind(2, target_needs(entry.source));
  bind_blob(insert, 3, pack(embed(entry.structure)));
  bind_blob(insert, 4, pack(embed_text(words_of(entry))));
  insert.exec();
}

}  // namespace

const char* const kEntryColumns =
    "id, name, origin, summary, tags, structure, source, fingerprint, speedup, target, created, uid, graph, "
    "compile_speedup, roofline, shapes, licence, model_source, task, lineage, toolchain, certificate, "
    "coalesce(verified, ''), coalesce(quarantined, '')";

Entry entry_in(SQLite::Statement& row) {
  int column = 0;
  auto text = [&] { return row.getColumn(column++).getString(); };
  auto number = [&] { return row.getColumn(column++).getDouble(); };
  Entry entry;
  entry.id = row.getColumn(column++).getInt64();
  entry.name = text();
  entry.origin = text();
  entry.summary = text();
  entry.tags = json::parse(text());
  entry.structure = structure_from(text());
  entry.source = text();
  entry.fingerprint = text();
  entry.speedup = number();
  entry.target = text();
  entry.created = text();
  entry.uid = text();
  entry.graph = text();
  entry.compile_speedup = number();
  entry.roofline = number();
  const json shapes = json::parse(text());
  entry.inputs = shapes_in(shapes, "inputs");
  entry.outputs = shapes_in(shapes, "outputs");
  entry.licence = text();
  entry.model_source = text();
  entry.task = text();
  entry.lineage = text();
  entry.toolchain = text();
  entry.certificate = text();
  entry.verified = text();
  entry.quarantined = text();
  return entry;
}

bool is_there(SQLite::Database& database, const std::string& fingerprint, const std::string& target) {
  SQLite::Statement query(database, "SELECT 1 FROM corpus WHERE fingerprint = ? AND target = ?");
  bind_all(query, fingerprint, target);
  return query.executeStep();
}

bool insert_entry(SQLite::Database& database, const Entry& entry) {
  const std::string graph = entry.graph.empty() ? graph_fingerprint(entry.structure) : entry.graph;
  const json shapes = {{"inputs", to_json(entry.inputs)}, {"outputs", to_json(entry.outputs)}};
  const int inserted = change(
      database,
      fmt::format("INSERT INTO corpus (uid, name, origin, target, fingerprint, graph, speedup, compile_speedup, "
                  "roofline, embedded, quarantined, verified, licence, created, summary, tags, structure, shapes, "
                  "toolchain, task, lineage, certificate, source, model_source) VALUES "
                  "(coalesce(nullif(?, ''), lower(hex(randomblob(16)))), ?, ?, ?, ?, ?, ?, ?, ?, ?, nullif(?, ''), "
                  "nullif(?, ''), ?, coalesce(nullif(?, ''), {}), ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) "
                  "ON CONFLICT DO NOTHING",
                  kNow),
      entry.uid, entry.name, entry.origin, entry.target, entry.fingerprint, graph, entry.speedup, entry.compile_speedup,
      entry.roofline, kEmbeddingVersion, entry.quarantined, entry.verified, entry.licence, entry.created, entry.summary,
      json(entry.tags).dump(), to_json(entry.structure).dump(), shapes.dump(), entry.toolchain, entry.task,
      entry.lineage, entry.certificate, entry.source, entry.model_source);
  if (inserted == 0) return false;
  insert_embedding(database, database.getLastInsertRowid(), entry);
  return true;
}

bool has_unembedded(SQLite::Database& database) {
  SQLite::Statement query(database, "SELECT 1 FROM corpus WHERE embedded < ?1 OR embedded > ?1 LIMIT 1");
  query.bind(1, kEmbeddingVersion);
  return query.executeStep();
}

void embed_rows(SQLite::Database& database) {
  while (has_unembedded(database)) {
    SQLite::Transaction transaction(database, SQLite::TransactionBehavior::IMMEDIATE);
    SQLite::Statement query(
        database, fmt::format("SELECT {} FROM corpus WHERE embedded < ? OR embedded > ? LIMIT ?", kEntryColumns));
    bind_all(query, kEmbeddingVersion, kEmbeddingVersion, kRowsOfTransaction);
    std::vector<Entry> entries;
    while (query.executeStep()) entries.push_back(entry_in(query));
    query.reset();
    for (const Entry& entry : entries) {
      change(database, "DELETE FROM embedding WHERE entry = ?", entry.id);
      insert_embedding(database, entry.id, entry);
      change(database, "UPDATE corpus SET embedded = ?, graph = ? WHERE id = ?", kEmbeddingVersion,
             entry.graph.empty() ? graph_fingerprint(entry.structure) : entry.graph, entry.id);
    }
    transaction.commit();
  }
}

json to_json(const std::vector<TensorShape>& shapes) {
  json list = json::array();
  for (const TensorShape& shape : shapes) list.push_back({{"dtype", shape.dtype}, {"shape", shape.extents}});
  return list;
}

std::vector<TensorShape> shapes_from(const json& list) {
  std::vector<TensorShape> shapes;
  for (const json& item : list) shapes.push_back({item.at("dtype"), item.at("shape")});
  return shapes;
}

std::string words_of(const Entry& entry) {
  return fmt::format("{} {} {}", entry.name, entry.summary, fmt::join(entry.tags, " "));
}

}  // namespace tilepilot::retrieval
