#include "retrieval/index/stored_index.h"

#include <SQLiteCpp/SQLiteCpp.h>
#include <faiss/IndexFlat.h>
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <queue>

#include "retrieval/index/sparse_vector.h"

namespace tilepilot::retrieval {
namespace {

namespace fs = std::filesystem;

constexpr int kDimensions = kStructureDimensions;
constexpr int64_t kBlock = 20'000;  // rows that are in memory at once while a file is made

std::string_view blob_of(const SQLite::Column& column) {
  return {static_cast<const char*>(column.getBlob()), static_cast<size_t>(column.getBytes())};
}

// One process makes the file; those that find it taken go on with what they have.
class BuildLock {
 public:
  explicit BuildLock(const fs::path& file)
      : descriptor_(open((file.string() + ".lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644)) {
    if (descriptor_ >= 0 && flock(descriptor_, LOCK_EX | LOCK_NB) != 0) {
      close(descriptor_);
      descriptor_ = -1;
    }
  }
  ~BuildLock() {
    if (descriptor_ >= 0) close(descriptor_);
  }
  BuildLock(const BuildLock&) = delete;
  BuildLock& operator=(const BuildLock&) = delete;
  bool held() const { return descriptor_ >= 0; }

 private:
  int descriptor_;
};

// What killed processes left; called by who holds the lock.
void remove_drafts(const fs::path& file) {
  std::error_code ignored;
  const std::string prefix = file.filename().string() + ".";
  const fs::path folder = file.has_parent_path() ? file.parent_path() : fs::path(".");
  for (const auto& item : fs::directory_iterator(folder, ignored)) {
    const std::string name = item.path().filename().string();
    if (name.starts_with(prefix) && name.ends_with(".tmp")) fs::remove(item.path(), ignored);
  }
}

void put(char (&into)[64], const std::string& text) {
  std::memset(into, 0, sizeof into);
  std::memcpy(into, text.data(), std::min(text.size(), sizeof into - 1));
}

std::string database_uid(SQLite::Database& database) {
  return database.execAndGet("SELECT uid FROM corpus_identity").getString();
}

// Of the entry that a row is of; empty: there is no such row.
std::string uid_of_row(SQLite::Database& database, int64_t row) {
  SQLite::Statement query(database, "SELECT uid FROM corpus WHERE id = (SELECT entry FROM embedding WHERE seq = ?)");
  query.bind(1, row);
  return query.executeStep() ? query.getColumn(0).getString() : std::string();
}

int64_t count_rows(SQLite::Database& database) {
  return database.execAndGet("SELECT count(*) FROM embedding WHERE twin IS NULL").getInt64();
}

}  // namespace

std::vector<Scored> exact_nearest(SQLite::Database& database, const WeighedQuery& query, size_t count) {
  const auto better = [](const Scored& a, const Scored& b) {
    return a.score != b.score ? a.score > b.score : a.row < b.row;
  };
  std::priority_queue<Scored, std::vector<Scored>, decltype(better)> best(better);  // the worst of them on top
  SQLite::Statement rows(database, "SELECT seq, structure, words FROM embedding ORDER BY seq");
  while (rows.executeStep()) {
    const double score = inner_product(blob_of(rows.getColumn(1)), query.structure) +
                         inner_product(blob_of(rows.getColumn(2)), query.text);
    if (score <= 0) continue;
    best.push({rows.getColumn(0).getInt64(), score});
    if (best.size() > count) best.pop();
  }
  std::vector<Scored> found;
  for (; !best.empty(); best.pop()) found.push_back(best.top());
  std::reverse(found.begin(), found.end());
  return found;
}

StoredIndex::StoredIndex(const fs::path& database_file, std::shared_ptr<SQLite::Database> database,
                         IndexOptions options, bool read_only)
    : file_(database_file.string() + ".index"),
      database_(std::move(database)),
      options_(options),
      read_only_(read_only),
      flat_(std::make_unique<faiss::IndexFlatIP>(kDimensions)) {}

StoredIndex::~StoredIndex() = default;

int64_t StoredIndex::size() const { return (ann_ ? ann_->label.count : 0) + static_cast<int64_t>(flat_rows_.size()); }

// The row that the file goes up to is still of the same entry: not so in another database, nor in an older copy of this
// one that has gone another way.
bool StoredIndex::is_of_this_database(const AnnLabel& label) {
  return label.embedding == kEmbeddingVersion && database_uid(*database_) == label.database &&
         uid_of_row(*database_, label.last) == label.last_uid;
}

void StoredIndex::take_file() {
  ann_ = AnnIndex::load(file_, /*for_adding*/ false);
  if (ann_ && !is_of_this_database(ann_->label)) ann_.reset();
  flat_->reset();
  flat_rows_.clear();
  overflows_ = false;
  last_row_ = ann_ ? ann_->label.last : 0;
}

// Takes rows that have come since the last search.
void StoredIndex::read_rows() {
  SQLite::Statement rows(*database_,
                         "SELECT seq, structure FROM embedding WHERE seq > ? AND twin IS NULL ORDER BY seq");
  rows.bind(1, last_row_);
  std::vector<float> vectors;
  auto add = [&] {
    flat_->add(static_cast<int64_t>(vectors.size()) / kDimensions, vectors.data());
    vectors.clear();
  };
  while (rows.executeStep()) {
    // A flat index of millions would take gigabytes: better read the table.
    if (!ann_ && static_cast<int64_t>(flat_rows_.size()) > 2 * options_.flat_most) {
      overflows_ = true;
      break;
    }
    vectors.resize(vectors.size() + kDimensions);
    unpack(blob_of(rows.getColumn(1)), std::span<float>(vectors.data() + vectors.size() - kDimensions, kDimensions));
    last_row_ = rows.getColumn(0).getInt64();
    flat_rows_.push_back(last_row_);
    if (static_cast<int64_t>(vectors.size()) >= kBlock * kDimensions) add();
  }
  add();
}

void StoredIndex::refresh() {
  if (last_row_ == 0 || overflows_) {  // by now someone may have made the file
    const bool overflowed = overflows_;
    take_file();
    overflows_ = overflowed && !ann_;
  }
  if (!overflows_) read_rows();
  const auto tail = static_cast<int64_t>(flat_rows_.size());
  const bool is_long = tail > std::max(options_.flat_most, ann_ ? ann_->label.count / 10 : 0);
  if ((overflows_ || is_long) && !read_only_) {
    if (!write_file(/*anew*/ false)) return;  // a disk that is full makes searches slow, not wrong
    if (!overflows_) read_rows();
  }
}

std::vector<int64_t> StoredIndex::candidates(const WeighedQuery& query, size_t count) {
  refresh();
  const bool by_structure = std::any_of(query.structure.begin(), query.structure.end(), [](float x) { return x != 0; });
  std::vector<int64_t> found;
  // Words are in no index.
  if (overflows_ || !by_structure) {
    for (const Scored& each : exact_nearest(*database_, query, count)) found.push_back(each.row);
    return found;
  }
  StructureVector direction = query.structure;
  normalise(direction);
  if (ann_)
    found = ann_->search(direction, std::min<int64_t>(static_cast<int64_t>(count), ann_->label.count), options_.probes);
  if (flat_rows_.empty()) return found;
  const auto most = static_cast<int64_t>(std::min(count, flat_rows_.size()));
  std::vector<float> scores(static_cast<size_t>(most));
  std::vector<int64_t> places(scores.size());
  flat_->search(1, direction.data(), most, scores.data(), places.data());
  for (size_t i = 0; i < places.size(); ++i)
    if (places[i] >= 0 && scores[i] > 0) found.push_back(flat_rows_[static_cast<size_t>(places[i])]);
  return found;
}

// Puts the rows after `index.label.last` into it.
void StoredIndex::add_rows_to(AnnIndex& index) {
  // One statement sees one state of the database, whatever others add meanwhile.
  SQLite::Statement rows(*database_,
                         "SELECT seq, structure FROM embedding WHERE seq > ? AND twin IS NULL ORDER BY seq");
  rows.bind(1, index.label.last);
  std::vector<float> vectors;
  std::vector<int64_t> numbers;
  auto add = [&] {
    index.add(vectors, numbers);
    index.label.count += static_cast<int64_t>(numbers.size());
    if (!numbers.empty()) index.label.last = numbers.back();
    vectors.clear();
    numbers.clear();
  };
  while (rows.executeStep()) {
    numbers.push_back(rows.getColumn(0).getInt64());
    vectors.resize(vectors.size() + kStructureDimensions);
    unpack(blob_of(rows.getColumn(1)),
           std::span<float>(vectors.data() + vectors.size() - kStructureDimensions, kStructureDimensions));
    if (static_cast<int64_t>(numbers.size()) >= kBlock) add();
  }
  add();
  put(index.label.last_uid, uid_of_row(*database_, index.label.last));
}

Status StoredIndex::build() {
  const int64_t expected = count_rows(*database_);
  const int64_t wanted = AnnIndex::sample_size(expected);
  // Evenly over the table, since what was added together is alike.
  SQLite::Statement rows(
      *database_,
      "SELECT structure FROM embedding WHERE twin IS NULL AND (seq * 2654435761) % 4294967296 < ? * 4294967296.0");
  rows.bind(1, std::min(1.0, 1.05 * static_cast<double>(wanted) / static_cast<double>(std::max<int64_t>(1, expected))));
  std::vector<float> sample;
  while (rows.executeStep()) {
    sample.resize(sample.size() + kStructureDimensions);
    unpack(blob_of(rows.getColumn(0)),
           std::span<float>(sample.data() + sample.size() - kStructureDimensions, kStructureDimensions));
  }
  if (sample.empty()) return {};
  AnnIndex index = AnnIndex::train(kStructureDimensions, sample, expected);
  std::vector<float>().swap(sample);
  put(index.label.database, database_uid(*database_));
  index.label.embedding = kEmbeddingVersion;
  add_rows_to(index);
  index.label.trained = index.label.count;
  return index.save(file_);
}

Status StoredIndex::extend() {
  auto index = AnnIndex::load(file_, /*for_adding*/ true);
  if (!index || !is_of_this_database(index->label)) return build();
  add_rows_to(*index);
  return index->save(file_);
}

Status StoredIndex::write_file(bool anew) {
  const BuildLock lock(file_);
  if (!lock.held()) return {};
  remove_drafts(file_);
  take_file();  // another process may have made one meanwhile
  const bool usable = ann_.has_value();
  // Clusters that were made for half of what there is now have become too large.
  const bool outgrown = usable && count_rows(*database_) > 2 * ann_->label.trained;
  ann_.reset();
  TRY(anew || !usable || outgrown ? build() : extend());
  take_file();
  return {};
}

Status StoredIndex::update(bool anew) {
  refresh();
  if (read_only_ || (!ann_ && !overflows_ && size() <= options_.flat_most)) return {};
  if (anew || !flat_rows_.empty()) TRY(write_file(anew));
  refresh();
  return {};
}

IndexState StoredIndex::state() {
  refresh();
  IndexState state{ann_         ? "ivf"
                   : overflows_ ? "none"
                                : "flat",
                   database_->execAndGet("SELECT count(*) FROM embedding").getInt64(),
                   size(),
                   0,
                   0,
                   0,
                   0};
  if (!ann_) return state;
  std::error_code error;
  const auto bytes = fs::file_size(file_, error);
  state.tail = static_cast<int64_t>(flat_rows_.size());
  state.bytes = error ? 0 : static_cast<int64_t>(bytes);
  state.clusters = ann_->clusters();
  state.probes = options_.probes > 0 ? options_.probes : AnnIndex::usual_probes(state.clusters);
  return state;
}

}  // namespace tilepilot::retrieval
