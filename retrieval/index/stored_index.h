// The index over the corpus of one database, which holds what the database holds, whatever was killed and whoever else
// writes. The database is the truth: its table `embedding` has every vector, each row with a number higher than those
// before it. Of rows with the same structure, which are many, the first alone is indexed; the others name it as their
// twin. Up to 50,000 structures the index is flat and made from the table when it is first searched. Above, an IVF
// index lies in a file beside the database (`tilepilot.db.index`) and says up to which row it goes; rows after that
// are read from the table and searched one by one, until they are many and whoever notices puts them into the file.
// Rows that are gone from the table are never found again, since candidates are compared by what the table says.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "retrieval/corpus.h"
#include "retrieval/index/ann_index.h"
#include "retrieval/index/embedding.h"

namespace SQLite {
class Database;
}
namespace faiss {
struct IndexFlatIP;
}

namespace tilepilot::retrieval {

// The vectors of a query, weighed by how much they count; the score of an entry is the sum of both inner products.
struct WeighedQuery {
  StructureVector structure{};
  TextVector text{};
};

// A row of `embedding`: the number, and the score that a query gives it.
struct Scored {
  int64_t row = 0;
  double score = 0;
};

// The `count` best of the whole table, read from its beginning to its end: what every index is measured by.
std::vector<Scored> exact_nearest(SQLite::Database& database, const WeighedQuery& query, size_t count);

class StoredIndex {
 public:
  // `read_only`: no file is written. The functions throw SQLite's exceptions.
  StoredIndex(const std::filesystem::path& database_file, std::shared_ptr<SQLite::Database> database,
              IndexOptions options, bool read_only);
  ~StoredIndex();

  // Rows among which are the nearest, with those that are their twins; fewer than `count`: there are no others that the
  // index gives. In no order. A query by words alone reads the whole table.
  std::vector<int64_t> candidates(const WeighedQuery& query, size_t count);
  // Errors: the index file cannot be written.
  Status update(bool anew);
  IndexState state();

  // How many structures it has.
  int64_t size() const;

 private:
  bool is_of_this_database(const AnnLabel& label);
  void refresh();
  void take_file();
  void read_rows();
  Status write_file(bool anew);
  Status build();
  Status extend();
  void add_rows_to(AnnIndex& index);

  std::filesystem::path file_;
  std::shared_ptr<SQLite::Database> database_;
  IndexOptions options_;
  bool read_only_;
  std::optional<AnnIndex> ann_;
  // Rows that are in no file.
  std::unique_ptr<faiss::IndexFlatIP> flat_;
  std::vector<int64_t> flat_rows_;
  int64_t last_row_ = 0;    // that was read
  bool overflows_ = false;  // more rows than a flat index takes, and no file
};

}  // namespace tilepilot::retrieval
