#include "retrieval/index/ann_index.h"

#include <faiss/IndexFlat.h>
#include <faiss/IndexIVFFlat.h>
#include <faiss/IndexPreTransform.h>
#include <faiss/VectorTransform.h>
#include <faiss/impl/io.h>
#include <faiss/index_io.h>
#include <faiss/invlists/OnDiskInvertedLists.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>

namespace tilepilot::retrieval {
namespace {

namespace fs = std::filesystem;

// Components that are kept. Of the hashed features of real programs they hold nearly all of the variance; what they
// miss is made up for by comparing candidates exactly.
constexpr int kComponents = 64;
constexpr int kSampleOfCluster = 64;  // vectors of the sample for each cluster
constexpr int kIterations = 8;        // of k-means: more of them move few vectors

// Stands at the end of the file, so that FAISS reads and maps what is before it.
struct Trailer {
  AnnLabel label;
  uint64_t payload = 0;  // bytes before it
  char magic[8] = {'T', 'i', 'P', 'i', 'A', 'n', 'n', '1'};
};

Error unwritable(const fs::path& file, std::string_view why) {
  return make_error(DiagnosticKind::store_unusable, {},
                    fmt::format("cannot write the index `{}`: {}", file.string(), why),
                    "make room or the folder writable; searches go on without it, more slowly");
}

struct CloseFile {
  void operator()(std::FILE* file) const { std::fclose(file); }
};
using File = std::unique_ptr<std::FILE, CloseFile>;

std::optional<Trailer> read_trailer(const fs::path& file) {
  File stream(std::fopen(file.c_str(), "rb"));
  const Trailer expected;
  Trailer found;
  if (!stream || std::fseek(stream.get(), -static_cast<long>(sizeof found), SEEK_END) != 0) return std::nullopt;
  const long payload = std::ftell(stream.get());
  if (std::fread(&found, sizeof found, 1, stream.get()) != 1) return std::nullopt;
  if (std::memcmp(found.magic, expected.magic, sizeof expected.magic) != 0) return std::nullopt;
  if (found.payload != static_cast<uint64_t>(payload)) return std::nullopt;
  found.label.database[sizeof found.label.database - 1] = found.label.last_uid[sizeof found.label.last_uid - 1] = '\0';
  return found;
}

void sync_folder(const fs::path& file) {
  const fs::path folder = file.has_parent_path() ? file.parent_path() : fs::path(".");
  const int descriptor = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) return;
  fsync(descriptor);
  close(descriptor);
}

int64_t clusters_for(int64_t vectors) {
  return std::max<int64_t>(1, static_cast<int64_t>(4 * std::sqrt(static_cast<double>(vectors))));
}

}  // namespace

AnnIndex::AnnIndex(std::unique_ptr<faiss::Index> index) : index_(std::move(index)) {
  auto* chain = dynamic_cast<faiss::IndexPreTransform*>(index_.get());
  lists_ = dynamic_cast<faiss::IndexIVF*>(chain != nullptr ? chain->index : index_.get());
}

int AnnIndex::clusters() const { return static_cast<int>(lists_->nlist); }

int AnnIndex::usual_probes(int clusters) { return std::max(8, clusters / 125); }

int64_t AnnIndex::sample_size(int64_t expected) {
  return std::min(expected, clusters_for(expected) * kSampleOfCluster);
}

AnnIndex AnnIndex::train(int dimensions, const std::vector<float>& sample, int64_t expected) {
  const auto rows = static_cast<int64_t>(sample.size()) / dimensions;
  const auto clusters = std::min(clusters_for(expected), std::max<int64_t>(1, rows));
  const int components = static_cast<int>(std::min<int64_t>({kComponents, dimensions, rows}));
  auto* quantizer = new faiss::IndexFlatL2(components);
  auto* lists = new faiss::IndexIVFFlat(quantizer, static_cast<size_t>(components), static_cast<size_t>(clusters));
  lists->own_fields = true;
  lists->cp.niter = kIterations;
  lists->cp.min_points_per_centroid = 1;
  lists->cp.max_points_per_centroid = kSampleOfCluster;
  // Of vectors of length 1 the nearest by distance are those with the largest inner product.
  auto chain = std::make_unique<faiss::IndexPreTransform>(new faiss::PCAMatrix(dimensions, components), lists);
  chain->own_fields = true;
  chain->train(rows, sample.data());
  return AnnIndex(std::move(chain));
}

std::optional<AnnIndex> AnnIndex::load(const fs::path& file, bool for_adding) {
  const auto trailer = read_trailer(file);
  if (!trailer) return std::nullopt;
  try {
    AnnIndex found(std::unique_ptr<faiss::Index>(
        faiss::read_index(file.c_str(), for_adding ? 0 : faiss::IO_FLAG_MMAP | faiss::IO_FLAG_READ_ONLY)));
    if (found.lists_ == nullptr) return std::nullopt;
    // Threads that read ahead take longer to start than a search takes.
    if (auto* mapped = dynamic_cast<faiss::OnDiskInvertedLists*>(found.lists_->invlists)) mapped->prefetch_nthread = 0;
    found.label = trailer->label;
    return found;
  } catch (const std::exception&) { return std::nullopt; }
}

void AnnIndex::add(std::span<const float> vectors, std::span<const int64_t> numbers) {
  index_->add_with_ids(static_cast<int64_t>(numbers.size()), vectors.data(), numbers.data());
}

std::vector<int64_t> AnnIndex::search(std::span<const float> query, int64_t count, int probes) {
  lists_->nprobe = static_cast<size_t>(std::min(clusters(), probes > 0 ? probes : usual_probes(clusters())));
  std::vector<int64_t> numbers(static_cast<size_t>(count));
  std::vector<float> distances(numbers.size());
  index_->search(1, query.data(), count, distances.data(), numbers.data());
  std::erase(numbers, -1);
  return numbers;
}

Status AnnIndex::save(const fs::path& file) {
  const fs::path draft = file.string() + fmt::format(".{}.tmp", getpid());
  std::error_code ignored;
  try {
    File stream(std::fopen(draft.c_str(), "wb"));
    if (!stream) return unwritable(file, std::strerror(errno));
    faiss::write_index(index_.get(), stream.get());
    Trailer trailer;
    trailer.label = label;
    trailer.payload = static_cast<uint64_t>(std::ftell(stream.get()));
    const bool written = std::fwrite(&trailer, sizeof trailer, 1, stream.get()) == 1 &&
                         std::fflush(stream.get()) == 0 && fsync(fileno(stream.get())) == 0;
    if (!written) throw std::runtime_error(std::strerror(errno));
    stream.reset();
    fs::rename(draft, file);
    sync_folder(file);
    return {};
  } catch (const std::exception& failure) {
    fs::remove(draft, ignored);
    return unwritable(file, failure.what());
  }
}

}  // namespace tilepilot::retrieval
