#include "eval/worker/candidate/fresh_memory.h"

#include <ATen/Functions.h>
#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>
#include <ATen/record_function.h>
#include <c10/core/Allocator.h>
#include <c10/core/CPUAllocator.h>
#include <c10/core/impl/alloc_cpu.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <map>
#include <mutex>
#include <random>
#include <string_view>

#include "eval/torch/gpu.h"
#include "eval/torch/threads.h"

namespace tilepilot::eval {
namespace {

constexpr size_t kBlockAlignment = 64;  // of blocks, and the size of their headers
constexpr size_t kPage = 4096;
constexpr size_t kSmall = 1024;  // filled as a whole also within a call
constexpr size_t kParallel = size_t{1} << 20;
constexpr size_t kMostWaiting = size_t{4} << 30;

// With bit 2 of each byte cleared, the exponent of no floating type is all ones: no number is infinite or NaN.
constexpr uint64_t kVarying = 0xFBFBFBFBFBFBFBFB;

// As many random bytes as two pages of the pattern; fills begin anywhere in the first.
class Pattern {
 public:
  static constexpr size_t kBytes = size_t{128} << 10;

  explicit Pattern(uint64_t seed) : words_(2 * kBytes / sizeof(uint64_t)) { draw(seed); }

  void draw(uint64_t seed) {
    random_.seed(seed);
    for (auto& word : words_) word = random_() & kVarying;
  }
  const std::vector<uint64_t>& words() const { return words_; }
  const char* begin() const { return reinterpret_cast<const char*>(words_.data()); }
  const char* anywhere() { return begin() + random_() % (kBytes / kBlockAlignment) * kBlockAlignment; }
  uint64_t number() { return random_(); }

 private:
  std::mt19937_64 random_;
  std::vector<uint64_t> words_;
};

void copy_pattern(const char* pattern, char* into, size_t size) {
  for (size_t at = 0; at < size; at += Pattern::kBytes)
    std::memcpy(into + at, pattern, std::min(Pattern::kBytes, size - at));
}

class FreshAllocator final : public c10::Allocator {
 public:
  c10::DataPtr allocate(size_t size) override {
    const c10::Device cpu(c10::DeviceType::CPU);
    if (size == 0) return {nullptr, nullptr, &give_back, cpu};
    void* data = take((size + kBlockAlignment - 1) / kBlockAlignment * kBlockAlignment);
    return {data, data, &give_back, cpu};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &give_back; }
  void copy_data(void* to, const void* from, size_t count) const override { default_copy_data(to, from, count); }

  FreshMemory set(FreshMemory mode) { return mode_.exchange(mode); }
  void renew(uint64_t seed);
  void copy_into(const at::Tensor& tensor);
  void renew_stacks();
  void release();

 private:
  // In front of a block's data.
  struct alignas(kBlockAlignment) Header {
    size_t size;
  };
  struct Blocks {
    std::vector<void*> clean, used;  // used: freed since the last renewal
  };

  void* take(size_t size);
  void* make(size_t size);
  static void destroy(void* data) { c10::free_cpu(static_cast<Header*>(data) - 1); }
  static void give_back(void* data);
  void put_back(void* data);
  void fill(void* data, size_t size);
  void sprinkle(void* data, size_t size);

  std::atomic<FreshMemory> mode_ = FreshMemory::plain;
  std::mutex mutex_;  // guards what follows
  std::map<size_t, Blocks> waiting_;
  size_t kept_ = 0;  // bytes
  Pattern pattern_{std::random_device{}()};
};

FreshAllocator& allocator() {
  static auto* instance = new FreshAllocator;  // tensors may outlive static objects
  return *instance;
}

void FreshAllocator::fill(void* data, size_t size) {
  auto* bytes = static_cast<char*>(data);
  const char* pattern = pattern_.anywhere();
  if (size < kParallel || at::in_parallel_region()) return copy_pattern(pattern, bytes, size);
  const auto pieces = static_cast<int64_t>((size + Pattern::kBytes - 1) / Pattern::kBytes);
  at::parallel_for(0, pieces, 1, [&](int64_t first, int64_t last) {
    const size_t begin = static_cast<size_t>(first) * Pattern::kBytes;
    copy_pattern(pattern, bytes + begin, std::min(size, static_cast<size_t>(last) * Pattern::kBytes) - begin);
  });
}

// A random line in every page.
void FreshAllocator::sprinkle(void* data, size_t size) {
  if (size <= kSmall) return fill(data, size);
  auto* bytes = static_cast<char*>(data);
  uint64_t random = pattern_.number() | 1;
  const char* pattern = pattern_.anywhere();
  for (size_t page = 0; page < size; page += kPage) {
    const size_t lines = std::min(kPage, size - page) / kBlockAlignment;
    random = random * 6364136223846793005ULL + 1442695040888963407ULL;
    std::memcpy(bytes + page + (random >> 33) % lines * kBlockAlignment, pattern, kBlockAlignment);
  }
}

void* FreshAllocator::make(size_t size) {
  void* memory = nullptr;
  try {
    memory = c10::alloc_cpu(size + sizeof(Header));
  } catch (const c10::Error&) {
    release();  // may have kept what is wanted now
    memory = c10::alloc_cpu(size + sizeof(Header));
  }
  auto* header = new (memory) Header{size};
  return header + 1;
}

void* FreshAllocator::take(size_t size) {
  const FreshMemory mode = mode_;
  if (mode == FreshMemory::plain) return make(size);
  if (mode == FreshMemory::repeatable) {
    void* data = make(size);
    std::memset(data, 0x3C, size);
    return data;
  }
  {
    const std::lock_guard lock(mutex_);
    auto found = waiting_.find(size);
    if (found != waiting_.end()) {
      auto& [clean, used] = found->second;
      auto& from = clean.empty() ? used : clean;
      if (!from.empty()) {
        void* data = from.back();
        from.pop_back();
        kept_ -= size;
        if (&from == &used) sprinkle(data, size);
        return data;
      }
    }
  }
  void* data = make(size);
  const std::lock_guard lock(mutex_);
  fill(data, size);
  return data;
}

void FreshAllocator::give_back(void* data) {
  if (data) allocator().put_back(data);
}

void FreshAllocator::put_back(void* data) {
  const size_t size = (static_cast<Header*>(data) - 1)->size;
  if (mode_ == FreshMemory::pooled) {
    const std::lock_guard lock(mutex_);
    if (kept_ + size <= kMostWaiting) {
      kept_ += size;
      waiting_[size].used.push_back(data);
      return;
    }
  }
  destroy(data);
}

void FreshAllocator::renew(uint64_t seed) {
  const std::lock_guard lock(mutex_);
  pattern_.draw(seed);
  for (auto& [size, blocks] : waiting_) {
    for (void* data : blocks.used) fill(data, size);
    blocks.clean.insert(blocks.clean.end(), blocks.used.begin(), blocks.used.end());
    blocks.used.clear();
    for (size_t i = blocks.clean.size(); i > 1; --i)
      std::swap(blocks.clean[i - 1], blocks.clean[pattern_.number() % i]);
  }
}

void FreshAllocator::release() {
  const std::lock_guard lock(mutex_);
  for (auto& [size, blocks] : waiting_) {
    for (auto* list : {&blocks.clean, &blocks.used})
      for (void* data : *list) destroy(data);
  }
  waiting_.clear();
  kept_ = 0;
}

// The factories that all others without values come down to.
bool leaves_memory_as_it_is(std::string_view op) {
  return op == "aten::empty" || op == "aten::empty_strided" || op == "aten::empty_permuted";
}

// How often a call asks for how many bytes.
using BlockSizes = std::map<int64_t, int64_t>;

// LibTorch's callbacks are plain functions: where they note, for the thread that registered them.
struct Watch {
  c10::DeviceType type;
  BlockSizes sizes;
};
thread_local Watch* watching = nullptr;

std::unique_ptr<at::ObserverContext> begin_allocation(const at::RecordFunction&) { return nullptr; }

void note_size(const at::RecordFunction& function, at::ObserverContext*) {
  if (!watching || !leaves_memory_as_it_is(function.name())) return;
  for (const c10::IValue& output : function.outputs()) {
    if (!output.isTensor()) continue;
    const at::Tensor& tensor = output.toTensor();
    if (tensor.layout() != at::kStrided || tensor.device().type() != watching->type || tensor.numel() == 0) continue;
    ++watching->sizes[static_cast<int64_t>(tensor.storage().nbytes())];
  }
}

}  // namespace

void install_fresh_memory() { c10::SetCPUAllocator(&allocator(), 1); }
FreshMemory set_fresh_memory(FreshMemory mode) { return allocator().set(mode); }
void renew_fresh_memory(uint64_t seed) { allocator().renew(seed); }
void release_fresh_memory() { allocator().release(); }

struct DeviceMemory::Learned {
  static constexpr int64_t kMostBytes = int64_t{24} << 30;  // that are filled
  Watch watch;
  BlockSizes most;    // of a call, rounded up
  int64_t calls = 0;  // of the batch that is watched
  std::optional<uint64_t> callback;
  int batches = 0, most_batches = 0;  // that are watched
  // What LibTorch allocates elsewhere (the outputs of convolutions, workspaces of libraries) nobody tells, but the
  // GPU's memory that it took within a batch of so many calls: to take it takes milliseconds.
  std::map<int64_t, int64_t> taken_within;
  int64_t taken_before = 0, given = 0;  // to the factories

  void note_batch() {
    for (auto& [size, count] : watch.sizes) most[size] = std::max(most[size], (count + calls - 1) / calls);
    if (callback && ++batches >= most_batches) {
      at::removeCallback(*callback);
      callback.reset();
    }
  }
  bool is_on_gpu() const { return watch.type == c10::DeviceType::CUDA; }
  void note_taken() {
    if (calls == 0 || !is_on_gpu()) return;
    int64_t asked = 0;
    for (auto& [size, count] : watch.sizes) asked += size * count;
    const int64_t taken = gpu_memory_taken(), more = taken - taken_before - std::max<int64_t>(0, asked - given);
    int64_t& within = taken_within[calls];
    within = std::min(within + std::max<int64_t>(0, more), kMostBytes);
    taken_before = taken;
    given = asked;  // they are not asked for again
  }
};

DeviceMemory::DeviceMemory(c10::DeviceType type, int batches) : learned_(std::make_unique<Learned>()) {
  learned_->watch.type = type;
  learned_->most_batches = batches;
  learned_->callback = at::addThreadLocalCallback(
      at::RecordFunctionCallback(begin_allocation, note_size).needsOutputs(true).scopes({at::RecordScope::FUNCTION}));
}

DeviceMemory::~DeviceMemory() {
  if (learned_->callback) at::removeCallback(*learned_->callback);
  watching = nullptr;
}

void DeviceMemory::renew(int64_t calls) {
  at::NoGradGuard no_grad;
  at::DisableRecordFunctionGuard unobserved;
  auto& learned = *learned_;
  if (learned.calls > 0) learned.note_batch();
  learned.calls = calls;
  learned.watch.sizes.clear();
  watching = &learned.watch;
  std::vector<at::Tensor> blocks;
  int64_t total = 0;
  const auto add = [&](int64_t size) {
    blocks.push_back(at::empty({size}, at::dtype(at::kByte).device(learned.watch.type)));
    fill_with_random_bytes(blocks.back());
    total += size;
  };
  try {
    for (auto& [size, count] : learned.most)
      for (int64_t i = 0; i < count * calls && total + size <= Learned::kMostBytes; ++i) add(size);
    learned.given = total;
    const int64_t within = learned.taken_within[calls];
    if (within > 0 && total + within <= Learned::kMostBytes) add(within);
  } catch (const c10::OutOfMemoryError&) {}  // calls may get by with less at once
  blocks.clear();
  if (learned.is_on_gpu()) learned.taken_before = gpu_memory_taken();
}

void DeviceMemory::note() { learned_->note_taken(); }

void DeviceMemory::end() { watching = nullptr; }

void FreshAllocator::copy_into(const at::Tensor& tensor) {
  constexpr auto kBytes = static_cast<int64_t>(Pattern::kBytes);
  const auto size = static_cast<int64_t>(tensor.storage().nbytes());
  const char* pattern = nullptr;
  {
    const std::lock_guard lock(mutex_);
    pattern = pattern_.anywhere();
  }
  const at::Tensor bytes = at::empty({0}, tensor.options().dtype(at::kByte)).set_(tensor.storage(), 0, {size}, {1});
  const at::Tensor host = at::from_blob(const_cast<char*>(pattern), {std::min(size, kBytes)}, at::kByte);
  const at::Tensor random = host.to(tensor.device());
  const int64_t whole = size / kBytes;
  if (whole > 0) bytes.narrow(0, 0, whole * kBytes).view({whole, kBytes}).copy_(random);
  const int64_t rest = size % kBytes;
  if (rest > 0) bytes.narrow(0, whole * kBytes, rest).copy_(random.narrow(0, 0, rest));
}

[[gnu::noinline]] void fill_stack(const char* pattern) {
  char here[Pattern::kBytes];
  std::memcpy(here, pattern, sizeof here);
  asm volatile("" : : "r"(here) : "memory");  // it is not for nothing
}

void FreshAllocator::renew_stacks() {
  const char* pattern = nullptr;
  {
    const std::lock_guard lock(mutex_);
    pattern = pattern_.anywhere();
  }
  const int64_t threads = at::get_num_threads();
  libtorch_threads()(threads, [&](int64_t, int64_t) { fill_stack(pattern); });
  fill_stack(pattern);
}

void renew_stacks() { allocator().renew_stacks(); }

void fill_with_random_bytes(const at::Tensor& tensor) {
  at::NoGradGuard no_grad;
  at::DisableRecordFunctionGuard unobserved;
  allocator().copy_into(tensor);
}

namespace {

// The words of 32 bits that fresh memory of a seed is made of.
class KnownWords {
 public:
  explicit KnownWords(uint64_t seed) : marks_(size_t{1} << kMarkBits) {
    const Pattern pattern(seed);
    for (const uint64_t word : pattern.words())
      for (const uint64_t half : {word & UINT32_MAX, word >> 32}) words_.push_back(static_cast<uint32_t>(half));
    std::sort(words_.begin(), words_.end());
    for (const uint32_t word : words_) marks_[word >> (32 - kMarkBits)] = true;
  }
  bool has(uint32_t word) const {
    return marks_[word >> (32 - kMarkBits)] && std::binary_search(words_.begin(), words_.end(), word);
  }

 private:
  static constexpr int kMarkBits = 20;
  std::vector<uint32_t> words_;
  std::vector<bool> marks_;  // by the upper bits: most words of others need no search
};

}  // namespace

int64_t unwritten_elements(const at::Tensor& tensor, uint64_t seed) {
  constexpr size_t kWord = sizeof(uint32_t);
  constexpr int64_t kLookedAt = int64_t{1} << 26;  // of more, some all over the tensor
  const int64_t step = std::max<int64_t>(1, tensor.numel() / kLookedAt);
  const at::Tensor elements =
      (step == 1 ? tensor : tensor.flatten().slice(0, 0, std::nullopt, step)).cpu().contiguous();
  const size_t bytes = elements.element_size(), count = static_cast<size_t>(elements.numel());
  if (bytes < kWord || bytes % kWord != 0) return 0;
  const KnownWords known(seed);
  const auto* data = static_cast<const char*>(elements.const_data_ptr());
  int64_t found = 0;
  for (size_t i = 0; i < count; ++i) {
    bool fresh = true;
    for (size_t part = 0; part < bytes && fresh; part += kWord) {
      uint32_t word = 0;
      std::memcpy(&word, data + i * bytes + part, kWord);
      fresh = known.has(word);
    }
    found += fresh;
  }
  // Of other words, one in 65,000 is among them.
  constexpr int64_t kFewest = 4, kChance = 4096;
  return found > kFewest + elements.numel() / kChance ? found * step : 0;
}

}  // namespace tilepilot::eval
