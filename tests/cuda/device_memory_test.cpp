// The prelude of kernels on a GPU or in the emulator: copies, matrices in shared memory, threads together, atomics.
#include <numeric>
#include <random>

#include "compiler/layout/atoms.h"
#include "tests/cuda/gpu_fixture.h"

namespace tilepilot::testing {
namespace {

using layout::Transposed;

class DeviceMemoryTest : public GpuTest {
 protected:
  static constexpr uint32_t kShared = 4096;

  static std::vector<uint8_t> random_bytes(size_t count) {
    std::mt19937 random(5);
    std::vector<uint8_t> bytes(count);
    for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(random());
    return bytes;
  }
  // One block.
  static void run_block(const std::string& unit, const std::string& function, uint32_t threads,
                        const std::vector<const Memory*>& arrays, const std::vector<int64_t>& scalars = {}) {
    run(unit, function, {.threads = {threads, 1, 1}, .shared_bytes = kShared}, {arrays, scalars});
  }
};

TEST_F(DeviceMemoryTest, VectorsOfEachWidth) {
  const std::vector<uint8_t> bytes = random_bytes(3072);
  const Memory from = upload(bytes), to = upload(random_bytes(3072));
  run_block("memory", "vectors", 32, {&from, &to});
  const auto got = download<uint8_t>(to);
  std::vector<uint8_t> expected = random_bytes(3072);
  for (int k = 0; k < 5; ++k) {
    const size_t width = size_t{1} << k, base = static_cast<size_t>(k) * 512;
    for (size_t lane = 0; lane < 32; ++lane)
      for (size_t byte = 0; byte < width; ++byte)
        expected[base + lane * width + byte] = bytes[base + (lane ^ 1) * width + byte];
  }
  std::fill(expected.begin() + 2560, expected.begin() + 2560 + 512, 0);
  for (size_t lane = 0; lane < 32; lane += 2) std::fill_n(expected.begin() + 1024 + static_cast<long>(lane) * 4, 4, 0);
  std::fill_n(expected.begin() + 1536, 8, 0);
  std::fill_n(expected.begin() + 512, 2, 0);
  expected[0] = 0;
  EXPECT_EQ(got, expected);
}

TEST_F(DeviceMemoryTest, AsyncCopiesWithZeros) {
  const std::vector<uint8_t> bytes = random_bytes(512);
  const Memory from = upload(bytes), to = zeros(3072);
  run_block("memory", "async_copies", 32, {&from, &to});
  const auto got = download<uint8_t>(to);
  for (size_t k = 0; k < 3; ++k) {
    const size_t width = size_t{4} << k;
    for (size_t byte = 0; byte < 32 * width; ++byte) {
      const bool inside = byte / width % 2 == 0;
      ASSERT_EQ(got[k * 1024 + byte], inside ? bytes[byte] : 0) << "width " << width << ", byte " << byte;
      ASSERT_EQ(got[k * 1024 + 512 + byte], bytes[byte]) << "width " << width << ", byte " << byte;
    }
  }
}

std::vector<uint16_t> numbered(size_t count) {
  std::vector<uint16_t> numbers(count);
  std::iota(numbers.begin(), numbers.end(), uint16_t{100});
  return numbers;
}

TEST_F(DeviceMemoryTest, MatricesAreLoadedAsTheLayoutsSay) {
  const std::vector<uint16_t> stack = numbered(256);
  const Memory from = upload(stack), to = zeros(6 * 32 * 16);
  run_block("memory", "matrices", 32, {&from, &to});
  const auto got = download<uint16_t>(to);
  for (int form = 0; form < 6; ++form) {
    const int64_t matrices = 4 >> (form / 2);
    const auto fragment = layout::ldmatrix_fragment(matrices, form % 2 == 0 ? Transposed::no : Transposed::yes);
    for (int64_t lane = 0; lane < 32; ++lane)
      for (int64_t element = 0; element < 8; ++element) {
        const bool loaded = element < 2 * matrices;
        const uint16_t expected = loaded ? stack[static_cast<size_t>(*fragment.element({lane, element}))] : 0;
        ASSERT_EQ(got[static_cast<size_t>((form * 32 + lane) * 8 + element)], expected)
            << "form " << form << ", lane " << lane << ", element " << element;
      }
  }
}

TEST_F(DeviceMemoryTest, MatricesAreStored) {
  if (!has(90)) GTEST_SKIP() << "stmatrix needs compute capability 9.0";
  const std::vector<uint16_t> stack = numbered(256);
  const Memory from = upload(stack), to = zeros(6 * 512);
  run_block("memory", "stored_matrices", 32, {&from, &to});
  const auto got = download<uint16_t>(to);
  for (size_t form = 0; form < 6; ++form)
    for (size_t row = 0; row < 32; ++row)
      for (size_t column = 0; column < 8; ++column) {
        const bool stored = row < size_t{8} * (4 >> (form / 2));
        const size_t source = form % 2 == 0 ? row * 8 + column : (row / 8 * 8 + column) * 8 + row % 8;
        ASSERT_EQ(got[form * 256 + row * 8 + column], stored ? stack[source] : 0)
            << "form " << form << ", row " << row << ", column " << column;
      }
}

class Shuffles : public DeviceMemoryTest {
 protected:
  // As the interpreter has it.
  static int64_t source_of(int op, int64_t lane, int64_t operand, int64_t width) {
    const int64_t start = lane / width * width, end = start + width, change = operand & 31;
    if (op == 0) return start + (operand & (width - 1));
    const int64_t other = op == 1 ? lane ^ change : op == 2 ? lane - change : lane + change;
    if (op == 2) return other >= start ? other : lane;
    return other < end ? other : lane;
  }
  template <class T>
  static void check(const std::string& name) {
    std::vector<T> values;
    for (int lane = 0; lane < 32; ++lane) values.push_back(static_cast<T>(lane * 7 + 3));
    if (sizeof(T) == 8)
      for (T& value : values) value = static_cast<T>(value * static_cast<T>(1e12));
    for (const int64_t width : {1, 2, 4, 8, 16, 32})
      for (const int64_t operand : {0, 1, 3, 5, 16, 31}) {
        const Memory from = upload(values), to = zeros(static_cast<int64_t>(32 * 4 * sizeof(T)));
        run_block("threads", "shuffles_" + name, 32, {&from, &to}, {operand, width});
        const auto got = download<T>(to);
        for (int64_t lane = 0; lane < 32; ++lane)
          for (int op = 0; op < 4; ++op)
            ASSERT_EQ(got[static_cast<size_t>(lane * 4 + op)],
                      values[static_cast<size_t>(source_of(op, lane, operand, width))])
                << name << ", lane " << lane << ", kind " << op << ", by " << operand << ", width " << width;
      }
  }
};

TEST_F(Shuffles, OfEachWidthAndType) {
  check<uint8_t>("uint8_t");
  check<uint16_t>("float16");
  check<float>("float");
  check<int64_t>("int64_t");
  check<double>("double");
}

TEST_F(DeviceMemoryTest, Votes) {
  for (const uint32_t pattern : {0u, 1u, 0x80000001u, 0xffffffffu, 0x12345678u}) {
    std::vector<int32_t> conditions;
    for (int lane = 0; lane < 32; ++lane) conditions.push_back(static_cast<int32_t>(pattern >> lane & 1u) * 5);
    const Memory from = upload(conditions), to = zeros(32 * 12);
    run_block("threads", "votes", 32, {&from, &to});
    const auto got = download<int32_t>(to);
    for (size_t lane = 0; lane < 32; ++lane) {
      EXPECT_EQ(got[lane * 3], pattern != 0);
      EXPECT_EQ(got[lane * 3 + 1], pattern == 0xffffffffu);
      EXPECT_EQ(static_cast<uint32_t>(got[lane * 3 + 2]), pattern);
    }
  }
}

TEST_F(DeviceMemoryTest, NamedBarriers) {
  const Memory to = zeros(512);
  run_block("threads", "named_barriers", 128, {&to});
  const auto got = download<int32_t>(to);
  for (int32_t thread = 0; thread < 128; ++thread)
    EXPECT_EQ(got[static_cast<size_t>(thread)], thread < 64 ? 7 : (thread - 64) * 3) << thread;
}

TEST_F(DeviceMemoryTest, BarrierOfTheWholeGrid) {
  const int64_t blocks = blocks_at_once();
  const Memory seen = zeros(blocks * 4), sums = zeros(blocks * 12);
  run("threads", "grid_barrier",
      {.grid = {static_cast<uint32_t>(blocks), 1, 1}, .threads = {64, 1, 1}, .cooperative = true},
      {{&seen, &sums}, {blocks}});
  const auto got = download<int32_t>(sums);
  for (int64_t round = 0; round < 3; ++round)
    for (int64_t block = 0; block < blocks; ++block)
      ASSERT_EQ(got[static_cast<size_t>(round * blocks + block)], blocks * (blocks - 1) / 2 + blocks * round);
}

// A trap takes the context of the process with it, so the test is a process of its own.
void fail_a_check(const std::function<Status(int64_t)>& launch) {
  const bool passes = launch(0).ok();
  const Status failed = launch(42);
  std::exit(passes && !failed.ok() && failed.error().kind == DiagnosticKind::device_failed ? 42 : 1);
}

TEST_F(DeviceMemoryTest, FailedCheckEndsTheLaunch) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(fail_a_check([](int64_t number) {
                return try_run("threads", "failing", {.threads = {32, 1, 1}}, {{}, {number}});
              }),
              ::testing::ExitedWithCode(42), "");
}

struct AtomicType {
  const char* name;
  ir::DType type;
  bool exact_sums;  // of any number of threads
};
constexpr AtomicType kAtomicTypes[] = {
    {"int8_t", ir::kInt8, true},     {"uint8_t", ir::kUInt8, true},      {"int16_t", ir::kInt16, true},
    {"int32_t", ir::kInt32, true},   {"uint32_t", ir::kUInt32, true},    {"int64_t", ir::kInt64, true},
    {"uint64_t", ir::kUInt64, true}, {"float", ir::kFloat32, true},      {"double", ir::kFloat64, true},
    {"float16", ir::kFloat16, true}, {"bfloat16", ir::kBFloat16, false}, {"float8_e5m2", ir::kFloat8E5M2, false},
};

class Atomics : public GpuTest, public ::testing::WithParamInterface<AtomicType> {};

TEST_P(Atomics, UpdateAsOne) {
  const auto& [name, type, exact] = GetParam();
  constexpr size_t kThreads = 512;
  const bool is_signed = type.code != ir::TypeCode::unsigned_int;
  Elements values(type, kThreads), place(type, 8);
  double sum = 0, bits = 0;
  for (size_t k = 0; k < kThreads; ++k) {
    const double few = k == 7 ? 5 : k == 100 || k == 300 ? 1 : k == 200 ? (is_signed ? -2 : 2) : 0;
    const double many = k == 7 ? 5 : static_cast<double>(k % 4) + (k == 200 && is_signed ? -4 : 0);
    const double value = exact ? many : few;
    values.set(k, value);
    sum += value;
    bits = static_cast<double>(static_cast<int>(bits) | static_cast<int>(std::abs(value)));
  }
  place.set(5, 3);
  place.set(6, 1);
  const Memory elements = upload(place.bytes()), from = upload(values.bytes()), before = zeros(64);
  run("atomics", std::string("updates_") + name, {.grid = {4, 1, 1}, .threads = {128, 1, 1}},
      {{&elements, &from, &before}});
  place.bytes() = download<std::byte>(elements);
  const ir::DType computed = type.is_small_float() ? ir::kFloat32 : type;
  Elements old(computed, 3);
  const auto seen = download<std::byte>(before);
  std::copy_n(seen.begin(), old.bytes().size(), old.bytes().begin());
  Elements wrapped(type, 1);
  wrapped.set(0, sum);
  EXPECT_EQ(place.get(0), 5);
  EXPECT_EQ(place.get(1), wrapped.get(0));
  EXPECT_EQ(place.get(2), !is_signed ? 0 : exact ? -4 : -2);
  EXPECT_EQ(place.get(3), 5);
  EXPECT_EQ(place.get(6), 1 + values.get(0));
  EXPECT_EQ(old.get(0), 3);
  EXPECT_EQ(old.get(1), 1);
  EXPECT_EQ(old.get(2), 3);
}

INSTANTIATE_TEST_SUITE_P(Types, Atomics, ::testing::ValuesIn(kAtomicTypes),
                         [](const auto& info) { return std::string(info.param.name); });

TEST_F(GpuTest, AtomicBits) {
  for (const auto& [name, type] : std::vector<std::pair<std::string, ir::DType>>{{"uint8_t", ir::kUInt8},
                                                                                 {"int16_t", ir::kInt16},
                                                                                 {"int32_t", ir::kInt32},
                                                                                 {"uint32_t", ir::kUInt32},
                                                                                 {"int64_t", ir::kInt64},
                                                                                 {"uint64_t", ir::kUInt64}}) {
    Elements values(type, 256), place(type, 8);
    for (size_t k = 0; k < 256; ++k) values.set(k, k == 3 ? 64 : k == 200 ? 9 : 0);
    const Memory elements = upload(place.bytes()), from = upload(values.bytes());
    run("atomics", "bits_" + name, {.grid = {2, 1, 1}, .threads = {128, 1, 1}}, {{&elements, &from, &elements}});
    place.bytes() = download<std::byte>(elements);
    EXPECT_EQ(place.get(4), 73) << name;
    EXPECT_EQ(place.get(3), 0) << name;
    EXPECT_EQ(place.get(5), 0) << name;
  }
}

TEST_F(DeviceMemoryTest, AtomicsInSharedMemory) {
  std::vector<int32_t> values;
  std::vector<int32_t> expected(16);
  std::mt19937 random(6);
  for (int k = 0; k < 512; ++k) {
    values.push_back(static_cast<int32_t>(random() % 16));
    ++expected[static_cast<size_t>(values.back())];
  }
  const Memory from = upload(values), words = zeros(64), halves = zeros(32), bytes = zeros(16);
  run_block("atomics", "histogram", 512, {&from, &words, &halves, &bytes});
  EXPECT_EQ(download<int32_t>(words), expected);
  Elements half(ir::kFloat16, 16), byte(ir::kInt8, 16);
  half.bytes() = download<std::byte>(halves);
  byte.bytes() = download<std::byte>(bytes);
  for (size_t k = 0; k < 16; ++k) {
    EXPECT_EQ(half.get(k), expected[k]);
    EXPECT_EQ(byte.get(k), expected[k]);
  }
}

}  // namespace
}  // namespace tilepilot::testing
