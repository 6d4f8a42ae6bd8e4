// An approximate index over many vectors, in one file: FAISS's inverted lists (IVF) over the vectors' principal
// components. It gives candidates; who asks compares them exactly. It knows nothing of a database: a vector is its
// number, and what the file says beside the vectors is what it was made for.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "compiler/diagnostics/result.h"

namespace faiss {
struct Index;
struct IndexIVF;
}  // namespace faiss

namespace tilepilot::retrieval {

// What an index file says of itself: which rows it holds.
struct AnnLabel {
  char database[64] = {};  // uid
  char last_uid[64] = {};  // of the entry whose row `last` is
  int64_t last = 0;        // highest number in it
  int64_t count = 0;       // vectors in it
  int64_t trained = 0;     // vectors that there were when its clusters were made
  int64_t embedding = 0;   // version of the embedding
};

class AnnIndex {
 public:
  // Finds clusters for about `expected` vectors from a sample, row by row, which holds at least as many vectors as the
  // index has clusters.
  static AnnIndex train(int dimensions, const std::vector<float>& sample, int64_t expected);
  // How many vectors of a sample are worth reading for that many vectors.
  static int64_t sample_size(int64_t expected);
  // Nullopt: no such file, or none that this version can use. `for_adding`: into memory; else the file is mapped.
  static std::optional<AnnIndex> load(const std::filesystem::path& file, bool for_adding);

  // Adds vectors, row by row.
  void add(std::span<const float> vectors, std::span<const int64_t> numbers);
  // Numbers of the nearest, the nearest first by the index's own account. `probes`: clusters that are looked at; 0: the
  // usual number.
  std::vector<int64_t> search(std::span<const float> query, int64_t count, int probes);
  // Replaces the file at once: whoever reads it has the old one or the new one, whenever this process is killed.
  // Errors: `store_unusable`.
  Status save(const std::filesystem::path& file);

  int clusters() const;
  static int usual_probes(int clusters);

  AnnLabel label;

 private:
  explicit AnnIndex(std::unique_ptr<faiss::Index> index);
  std::shared_ptr<faiss::Index> index_;
  faiss::IndexIVF* lists_ = nullptr;  // inside of it
};

}  // namespace tilepilot::retrieval
