// Pipelined loops over the columns of a tensor, in all combinations of what decides how their copies are made: the rank
// and the extents of the tensor, how often the loop runs, which way the copies go, what stands around the loop, and
// whether that is known before the launch. The emulator finds nothing wrong, and values are the interpreter's.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include "compiler/runtime/arguments.h"
#include "compiler/targets/gpu/facts/tensor_facts.h"
#include "tests/cpu/kernel_fixture.h"
#include "tests/cuda/interpreted.h"
#include "tests/ir/random_arguments.h"
#include "tests/rounds.h"

namespace tilepilot::testing {
namespace {

using targets::gpu::Architecture;

enum class Way { load, store, both };
enum class Around { blocks, turns };  // a block of the grid a tile of rows, or several of them in turn

struct LoopCase {
  int64_t rank = 2;
  Way way = Way::load;
  Around around = Around::blocks;
  int64_t rows = 0, columns = 0;  // that the last tiles lack
  int64_t steps = 1, stages = 3;
  bool is_dynamic = false;  // how many columns there are is known at launch alone

  std::string name() const {
    constexpr const char* kWays[] = {"load", "store", "both"};
    return fmt::format("{} axes, {}, {}, {} rows and {} columns less, {} steps of {} stages{}", rank,
                       kWays[static_cast<int>(way)], around == Around::blocks ? "a block each" : "in turn", rows,
                       columns, steps, stages, is_dynamic ? " at launch" : "");
  }
  // Columns, `wide` a tile.
  std::string extent(int64_t wide) const {
    return is_dynamic ? "n" : std::to_string(std::max<int64_t>(0, steps * wide - columns));
  }
  LoopCase known() const {
    LoopCase result = *this;
    result.is_dynamic = false;
    return result;
  }
};

// A kernel of which each block does BODY for the tiles of rows `row`; `batch` names the second axis of the grid.
std::string in_kernel(const LoopCase& c, int64_t tiles, int64_t threads, const std::string& allocations,
                      const std::string& body) {
  const std::string batch = c.rank == 3 ? ", 2" : "", name = c.rank == 3 ? ", batch" : "";
  if (c.around == Around::blocks)
    return fmt::format("  kernel row{} in {}{} threads {} {{\n{}{}  }}\n", name, tiles, batch, threads, allocations,
                       body);
  const std::string turns = tiles == 1 ? "2" : fmt::format("({} - bx) // 2", tiles + 1);
  const std::string row = tiles == 1 ? "turn" : "bx + turn * 2";
  return fmt::format(
      "  kernel bx{} in {}{} threads {} {{\n{}    serial turn in {} {{\n    let row: int32 = {}\n{}    }}\n  }}\n",
      name, tiles == 1 ? 1 : 2, batch, threads, allocations, turns, row, body);
}

// Tiles that are summed up, made, or both; 16 x 64, or 64 of a tensor of one axis.
std::string tiles_text(const LoopCase& c) {
  const bool flat = c.rank == 1;
  const std::string type = flat ? "float32" : "float16", n = c.extent(64), batch = c.rank == 3 ? "2, " : "",
                    at = c.rank == 3 ? "batch, " : "";
  const std::string tensor = flat ? fmt::format("[{}]", n) : fmt::format("[{}{}, {}]", batch, 48 - c.rows, n);
  const std::string box = flat ? "[k * 64 : +64]" : fmt::format("[{}row * 16 : +16, k * 64 : +64]", at);
  const std::string whole = flat ? "[2, 64]" : fmt::format("[{}48, 64]", batch);
  const std::string place = flat ? "[row, 0 : 64]" : fmt::format("[{}row * 16 : +16, 0 : 64]", at);
  const std::string shape = flat ? "[64]" : "[16, 64]";
  const std::string loop = flat ? "parallel j in 64" : "parallel i, j in 16, 64";
  const std::string here = flat ? "[j]" : "[i, j]", there = flat ? "[63 - j]" : "[i, 63 - j]";
  const bool loads = c.way != Way::store, stores = c.way != Way::load;
  std::string text = fmt::format("program tiles{}({}{}{}: float32{}) {{\n", c.is_dynamic ? "<n: int32>" : "",
                                 loads ? fmt::format("x: {}{}, ", type, tensor) : "",
                                 stores ? fmt::format("y: {}{}, ", type, tensor) : "", "w", whole);
  const std::string tiles =
      fmt::format("    {}{}    fragment f: float32{}\n", loads ? fmt::format("shared s: {}{}\n    ", type, shape) : "",
                  stores ? fmt::format("shared t: {}{}\n", type, shape) : "\n", shape);
  std::string body =
      fmt::format("    copy w{} -> f\n    pipelined k in ({} + 63) // 64 stages {} {{\n", place, n, c.stages);
  if (loads) body += fmt::format("      copy x{} -> s\n", box);
  if (c.way == Way::load)
    body += fmt::format("      {} {{\n        f{h} = f{h} + float32(s{}) * float32(k + 1)\n      }}\n", loop, there,
                        fmt::arg("h", here));
  if (stores)
    body += fmt::format("      {} {{\n        t{} = {}(f{} + float32(k + row){})\n      }}\n      copy t -> y{}\n",
                        loop, here, type, there, loads ? fmt::format(" + float32(s{})", there) : "", box);
  body += "    }\n";
  if (c.way == Way::load) body += fmt::format("    copy f -> w{}\n", place);
  return text + in_kernel(c, flat ? 1 : 3, 128, tiles, body) + "}\n";
}

// Products that threads of their own may feed; their results are summed up by rows, or stored as a tile. `narrow`:
// columns that the result lacks.
std::string products_text(const LoopCase& c, int64_t narrow) {
  const std::string k = c.extent(16), batch = c.rank == 3 ? "2, " : "", at = c.rank == 3 ? "batch, " : "";
  const int64_t tiles_of_rows = c.rank == 3 ? 2 : 3, m = tiles_of_rows * 128 - c.rows, n = 32 - narrow;
  const std::string result =
      c.way == Way::load ? fmt::format("float32[{}{}]", batch, m) : fmt::format("float16[{}{}, {}]", batch, m, n);
  const std::string tiles =
      "    shared a_tile: float16[128, 16]\n    shared b_tile: float16[16, 32]\n    fragment sums: float32[128, 32]\n"
      "    fragment row_sums: float32[128]\n";
  std::string body = fmt::format(R"(    fill sums = 0.0
    pipelined k in ({k} + 15) // 16 stages {stages} {{
      copy a[{at}row * 128 : +128, k * 16 : +16] -> a_tile
      copy b[{at}k * 16 : +16, 0 : 32] -> b_tile
      gemm sums += a_tile @ b_tile
    }}
)",
                                 fmt::arg("k", k), fmt::arg("at", at), fmt::arg("stages", c.stages));
  if (c.way == Way::load)
    body += fmt::format("    reduce sum sums -> row_sums axis 1\n    copy row_sums -> c[{}row * 128 : +128]\n", at);
  else
    body += fmt::format("    copy sums -> c[{}row * 128 : +128, 0 : 32]\n", at);
  return fmt::format("program products{}(a: float16[{}{}, {}], b: float16[{}{}, {}], c: {}) {{\n",
                     c.is_dynamic ? "<n: int32>" : "", batch, m, k, batch, k, n, result) +
         in_kernel(c, tiles_of_rows, 256, tiles, body) + "}\n";
}

// What a launch with such arguments gets.
ir::Program version_of(const std::string& text, const ir::testing::RandomArguments& arguments) {
  const ir::Program program = parse(text);
  const auto bound = runtime::bind_arguments(program, to_launch(arguments.values()), {});
  EXPECT_TRUE(bound.ok()) << bound.error().message;
  return targets::gpu::with_facts(program, targets::gpu::FactFinder(program).find(bound->buffers, bound->values));
}

// Programs that are compiled together, and each compared with one whose extents are all known.
class LoopMatrix {
 public:
  explicit LoopMatrix(Architecture architecture) : batch_(architecture) {}

  // Where they are known at launch alone, all numbers of steps share the code that one of them gets.
  void add(const LoopCase& c, const std::function<std::string(const LoopCase&)>& text, const std::string& name = {}) {
    if (::testing::Test::HasFatalFailure()) return;
    is_left_out_ = asked_++ % kEvery != 0;
    if (is_left_out_) return;
    LoopCase first = c;
    if (c.is_dynamic) first.steps = c.stages;
    const ir::Program known = parse(text(first.known()));
    const ir::testing::RandomArguments arguments(known, 1);
    const auto added = batch_.add(version_of(text(first), arguments));
    ASSERT_TRUE(added.ok()) << name << " " << c.name() << ": " << added.error().message;
    for (int64_t steps = c.is_dynamic ? 0 : c.steps; steps <= (c.is_dynamic ? c.stages + 1 : c.steps); ++steps) {
      LoopCase one = c;
      one.steps = steps;
      runs_.push_back({*added, name + ": " + one.name(), parse(text(one.known())), c.steps == 1 && !c.is_dynamic});
    }
  }

  void compare() {
    batch_.compile(false, false);  // more of the same as other tests compile for GPUs
    if (::testing::Test::HasFatalFailure()) return;
    for (const Run& run : runs_) expect_agreement(batch_, run.program, run.known, run.name);
  }

  // Whether the text of the last program has this. A loop that is known to have one step is none.
  void expect_in_last(const std::string& part, bool wanted) const {
    if (is_left_out_ || runs_.back().is_one_step) return;
    const std::string& source = batch_.source(batch_.size() - 1);
    EXPECT_EQ(source.find(part) != std::string::npos, wanted) << part << "\n" << source;
  }

 private:
  struct Run {
    size_t program;
    std::string name;
    ir::Program known;
    bool is_one_step;
  };
  static constexpr int kEvery = 20 / rounds(20);

  EmulatedBatch batch_;
  std::vector<Run> runs_;
  int asked_ = 0;
  bool is_left_out_ = false;
};

// Any number of steps from none to one more than there are stages, where the launch tells it; and some that the program
// tells.
std::vector<LoopCase> in_steps(const LoopCase& c, const std::vector<int64_t>& told) {
  std::vector<LoopCase> all(told.size() + 1, c);
  for (size_t k = 0; k < told.size(); ++k) all[k].steps = told[k];
  all.back().is_dynamic = true;
  return all;
}

class LoopsOfTiles : public ::testing::TestWithParam<std::tuple<int64_t, Way>> {};

TEST_P(LoopsOfTiles, AgreeWithTheInterpreter) {
  const auto [rank, way] = GetParam();
  LoopMatrix matrix(Architecture::sm_90a);
  for (const Around around : {Around::blocks, Around::turns})
    for (const int64_t rows : rank == 1 ? std::vector<int64_t>{0} : std::vector<int64_t>{0, 5})
      for (const int64_t columns : {0, 24, 5})
        for (const LoopCase& c : in_steps({rank, way, around, rows, columns},
                                          rank == 3 ? std::vector<int64_t>{} : std::vector<int64_t>{1, 4})) {
          matrix.add(c, tiles_text);
          const bool whole_rows = columns % 8 == 0;  // of multiples of 16 bytes
          matrix.expect_in_last("tma_load_", way != Way::store && (whole_rows || rank == 1));
          if (way != Way::load) matrix.expect_in_last("tma_store_", whole_rows && rank > 1);
        }
  matrix.compare();
}

INSTANTIATE_TEST_SUITE_P(Matrix, LoopsOfTiles,
                         ::testing::Combine(::testing::Values(1, 2, 3),
                                            ::testing::Values(Way::load, Way::store, Way::both)));

TEST(LoopsOfProducts, AgreeWithTheInterpreter) {
  LoopMatrix matrix(Architecture::sm_90a);
  for (const int64_t rank : {2, 3})
    for (const Way way : rank == 3 ? std::vector<Way>{Way::both} : std::vector<Way>{Way::load, Way::both})
      for (const Around around : {Around::blocks, Around::turns})
        for (const auto& [rows, columns, narrow] :
             {std::tuple{0, 0, 0}, std::tuple{28, 0, 0}, std::tuple{0, 8, 0}, std::tuple{0, 0, 8}, std::tuple{28, 8, 8},
              std::tuple{0, 3, 0}, std::tuple{0, 0, 5}})
          for (const LoopCase& c : in_steps({rank, way, around, rows, columns},
                                            rank == 3 ? std::vector<int64_t>{} : std::vector<int64_t>{4})) {
            matrix.add(c, [narrow = narrow](const LoopCase& one) { return products_text(one, narrow); });
            // A producer warpgroup loads tiles where TMA can.
            matrix.expect_in_last("set_registers_down", columns % 8 == 0 && narrow % 8 == 0);
          }
  matrix.compare();
}

// A ring that the program itself has: one warpgroup asks for tiles, the other one multiplies them, and tells so. `in
// turns` the loop runs three times.
std::string ring_text(const LoopCase& c, bool asynchronous) {
  const std::string n = c.extent(16), t = fmt::format("(({} + 15) // 16)", n);
  const bool turns = c.around == Around::turns;
  const std::string number = turns ? fmt::format("(turn * {} + k)", t) : "k";
  std::string arrivals;
  for (int64_t slot = 0; slot < c.stages; ++slot) arrivals += slot == 0 ? "128" : ", 128";
  return fmt::format(R"(program ring{symbols}(a: float16[{rows}, {n}], b: float16[{n}, 32], c: float32[64, 32]) {{
  kernel bx in 1 threads 256 {{
    shared a_ring: float16[{s}, 64, 16]
    shared b_ring: float16[{s}, 16, 32]
    fragment sums: float32[64, 32]
    barrier full: uint64[{s}] arrivals [{arrivals}]
    barrier empty: uint64[{s}] arrivals [{arrivals}]
    roles 0 {{
      fill sums = 0.0
      {turn}
      serial k in {t} {{
        on full[{at} % {s}] wait {at} // {s} % 2
        gemm sums += a_ring[{at} % {s}, 0 : 64, 0 : 16] @ b_ring[{at} % {s}, 0 : 16, 0 : 32] {running}
        {wait}
        on empty[{at} % {s}] arrive
      }}
      {end}
      copy sums -> c
    }}
    roles 1 {{
      {turn}
      serial k in {t} {{
        on empty[{at} % {s}] wait ({at} // {s} + 1) % 2
        copy a[0 : 64, k * 16 : +16] -> a_ring[{at} % {s}, 0 : 64, 0 : 16] mode bulk_load counting full[{at} % {s}]
        copy b[k * 16 : +16, 0 : 32] -> b_ring[{at} % {s}, 0 : 16, 0 : 32] mode bulk_load counting full[{at} % {s}]
        on full[{at} % {s}] arrive
      }}
      {end}
    }}
  }}
}})",
                     fmt::arg("symbols", c.is_dynamic ? "<n: int32>" : ""), fmt::arg("rows", 64 - c.rows),
                     fmt::arg("n", n), fmt::arg("s", c.stages), fmt::arg("arrivals", arrivals), fmt::arg("t", t),
                     fmt::arg("at", number), fmt::arg("turn", turns ? "serial turn in 3 {" : ""),
                     fmt::arg("end", turns ? "}" : ""), fmt::arg("running", asynchronous ? "asynchronous" : ""),
                     fmt::arg("wait", asynchronous ? "async wait_gemms" : ""));
}

TEST(LoopsOfRoles, AgreeWithTheInterpreter) {
  LoopMatrix matrix(Architecture::sm_90a);
  for (const int64_t stages : {1, 2, 3})
    for (const Around around : {Around::blocks, Around::turns})
      for (const auto& [rows, columns] : {std::pair{0, 0}, std::pair{5, 0}, std::pair{0, 8}, std::pair{5, 3}})
        for (const LoopCase& c : in_steps({.around = around, .rows = rows, .columns = columns, .stages = stages}, {1}))
          matrix.add(c, [&](const LoopCase& one) { return ring_text(one, stages % 2 == 0); });
  matrix.compare();
}

// What an iteration does beside its copies. Tiles of `x` and `b` are multiplied into `c`; what is added up goes to `d`;
// the loop writes `y`, `w` and `z`.
struct LoopBody {
  const char* name;
  const char* before;  // the loop
  const char* body;
  const char* after = "";
};

constexpr LoopBody kBodies[] = {
    {"a product", "", R"(
      copy x[0 : 64, k * 16 : +16] -> s
      copy b[k * 16 : +16, 0 : 32] -> bt
      gemm sums += s @ bt)"},
    {"work between copy and product", "", R"(
      copy x[0 : 64, k * 16 : +16] -> s
      copy b[k * 16 : +16, 0 : 32] -> bt
      parallel i, j in 64, 16 {
        t[i, j] = s[63 - i, 15 - j]
      }
      gemm sums += t @ bt)"},
    {"work in registers between copy and product", "", R"(
      copy x[0 : 64, k * 16 : +16] -> s
      copy b[k * 16 : +16, 0 : 32] -> bt
      copy s -> h
      parallel i, j in 64, 16 {
        h[i, j] = select(i > j + k, -h[i, j], h[i, j])
      }
      gemm sums += h @ bt)"},
    {"work in place", "", R"(
      copy x[0 : 64, k * 16 : +16] -> s
      copy b[k * 16 : +16, 0 : 32] -> bt
      parallel i, j in 64, 16 {
        s[i, j] = select(i > j + k, -s[i, j], s[i, j])
      }
      gemm sums += s @ bt)"},
    {"a tile filled twice", "", R"(
      copy x[0 : 64, k * 16 : +16] -> s
      parallel i, j in 64, 16 {
        f[i, j] = f[i, j] + float32(s[63 - i, j])
      }
      copy x[0 : 64, (T - 1 - k) * 16 : +16] -> s
      parallel i, j in 64, 16 {
        f[i, j] = f[i, j] + float32(s[63 - i, j]) * float32(k)
      })"},
    {"a tile read before it is overwritten", "    fill s = 1.0\n    fill bt = 2.0\n", R"(
      gemm sums += s @ bt
      parallel i, j in 64, 16 {
        f[i, j] = f[i, j] + float32(s[63 - i, j]) * float32(k)
      }
      copy x[0 : 64, k * 16 : +16] -> s
      copy b[k * 16 : +16, 0 : 32] -> bt)"},
    {"a tile of the iteration before", "", R"(
      if k > 0 {
        gemm sums += s @ bt
        parallel i, j in 64, 16 {
          f[i, j] = f[i, j] + float32(s[63 - i, j]) * float32(k)
        }
      }
      copy x[0 : 64, k * 16 : +16] -> s
      copy b[k * 16 : +16, 0 : 32] -> bt)"},
    {"a tile used after the loop", "    fill s = 1.0\n", R"(
      copy x[0 : 64, k * 16 : +16] -> s
      copy b[k * 16 : +16, 0 : 32] -> bt
      gemm sums += s @ bt)",
     R"(    parallel i, j in 64, 16 {
      f[i, j] = f[i, j] + float32(s[63 - i, j])
    }
)"},
    {"a tile made of another one", "", R"(
      copy x[0 : 64, k * 16 : +16] -> s
      copy s -> t
      copy x[0 : 64, (T - 1 - k) * 16 : +16] -> s
      parallel i, j in 64, 16 {
        f[i, j] = f[i, j] + float32(s[63 - i, j]) + float32(t[i, 15 - j]) * float32(k)
      })"},
    {"a tile filled in part", "    fill t = 1.0\n", R"(
      copy x[8 : 48, k * 16 : +16] -> t[0 : 40, 0 : 16]
      copy b[k * 16 : +16, 0 : 32] -> bt
      gemm sums += t @ bt
      fill t[36 : 44, 0 : 16] = 3.0)"},
    {"atomic additions", "", R"(
      copy x[0 : 64, k * 16 : +16] -> s
      copy b[k * 16 : +16, 0 : 32] -> bt
      gemm sums += s @ bt
      parallel i, j in 64, 16 {
        atomic add w[j], float32(s[i, j])
      })"},
    {"a copy of what atomic additions change", "", R"(
      copy x[0 : 64, k * 16 : +16] -> s
      parallel i, j in 64, 16 {
        atomic add w[j], float32(s[i, j])
      }
      copy w -> row
      parallel i, j in 64, 16 {
        f[i, j] = f[i, j] + row[15 - j]
      })"},
    {"atomic additions to a tile", "", R"(
      copy x[0 : 64, k * 16 : +16] -> s
      fill row = 0.0
      parallel i, j in 64, 16 {
        atomic add row[j], float32(s[i, j])
      }
      parallel i, j in 64, 16 {
        f[i, j] = f[i, j] + row[15 - j]
      })"},
    {"a copy of what the iteration before wrote", "", R"(
      copy y[0 : 64, k * 16 : +16] -> s
      parallel i, j in 64, 16 {
        y[i, (k + 1) * 16 + j] = float16(float32(s[63 - i, j]) - 0.25)
      }
      copy b[k * 16 : +16, 0 : 32] -> bt
      gemm sums += s @ bt)"},
    {"a tile stored that the next iteration loads", "    fill t = 0.5\n", R"(
      copy y[0 : 64, k * 16 : +16] -> s
      parallel i, j in 64, 16 {
        t[i, j] = float16(float32(s[63 - i, j]) - 0.25)
      }
      copy t -> y[0 : 64, (k + 1) * 16 : +16])"},
    {"a start that the iteration before computed", "    at[0] = 0\n", R"(
      copy x[0 : 64, at[0] * 16 : +16] -> s
      copy b[k * 16 : +16, 0 : 32] -> bt
      gemm sums += s @ bt
      at[0] = (at[0] + 3) % T)"},
    {"a start that all threads read from a tile", "    place[0] = 0\n", R"(
      copy x[0 : 64, place[0] * 16 : +16] -> s
      copy b[k * 16 : +16, 0 : 32] -> bt
      gemm sums += s @ bt
      place[0] = (place[0] + 3) % T)"},
    {"a start that a tensor tells", "", R"(
      let from: int32 = (u[k] + 32) % T
      copy x[0 : 64, from * 16 : +16] -> s
      copy b[k * 16 : +16, 0 : 32] -> bt
      gemm sums += s @ bt)"},
    {"copies of some iterations", "    fill s = 1.0\n    fill bt = 0.5\n", R"(
      if u[k] > 0 {
        copy x[0 : 64, k * 16 : +16] -> s
      }
      if k % 2 == 1 {
        copy b[k * 16 : +16, 0 : 32] -> bt
      }
      gemm sums += s @ bt)"},
    {"iterations of some", "", R"(
      if u[k] > 0 {
        copy x[0 : 64, k * 16 : +16] -> s
        copy b[k * 16 : +16, 0 : 32] -> bt
        gemm sums += s @ bt
      })"},
    {"a loop in it", "", R"(
      copy b[k * 16 : +16, 0 : 32] -> bt
      pipelined l in k + 1 stages 2 {
        copy x[0 : 64, l * 16 : +16] -> s
        gemm sums += s @ bt
      })"},
    {"a loop around", "    serial turn in 3 {\n", R"(
      copy x[0 : 64, k * 16 : +16] -> s
      copy b[k * 16 : +16, 0 : 32] -> bt
      gemm sums += s @ bt)",
     R"(    parallel i, j in 64, 16 {
      f[i, j] = f[i, j] * 0.5
    }
    }
)"},
    {"a loop after it, of another depth", "", R"(
      copy x[0 : 64, k * 16 : +16] -> s
      copy b[k * 16 : +16, 0 : 32] -> bt
      gemm sums += s @ bt)",
     R"(    pipelined l in T stages MORE {
      copy x[0 : 64, (T - 1 - l) * 16 : +16] -> s
      copy b[l * 16 : +16, 0 : 32] -> bt
      gemm sums += s @ bt
    }
)"},
    {"a loop before it, of another depth, whose last tile is used",
     R"(    fill s = 0.5
    pipelined l in T stages MORE {
      copy x[0 : 64, l * 16 : +16] -> s
      parallel i, j in 64, 16 {
        f[i, j] = f[i, j] + float32(s[63 - i, j])
      }
    }
)",
     R"(
      parallel i, j in 64, 16 {
        f[i, j] = f[i, j] + float32(s[i, 15 - j]) * float32(k)
      }
      copy x[0 : 64, k * 16 : +16] -> s)"},
};

std::string replaced_in(std::string text, const std::string& from, const std::string& to) {
  for (size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size()))
    text.replace(at, from.size(), to);
  return text;
}

std::string body_text(const LoopBody& body, const LoopCase& c) {
  const std::string n = c.extent(16);
  std::string text = fmt::format(
      R"(program bodies{}(x: float16[64, {n}], b: float16[{n}, 32], u: int32[8], w: float32[16], y: float16[64, {m}],
    c: float32[64, 32], d: float32[64, 16]) {{
  kernel bx in 1 threads 128 {{
    shared s: float16[64, 16]
    shared t: float16[64, 16]
    shared bt: float16[16, 32]
    shared row: float32[16]
    shared place: int32[1]
    local at: int32[1]
    fragment h: float16[64, 16]
    fragment f: float32[64, 16]
    fragment sums: float32[64, 32]
    copy c -> sums
    copy d -> f
{}    pipelined k in T stages {stages} {{{}
    }}
{}    copy sums -> c
    copy f -> d
  }}
}})",
      c.is_dynamic ? "<n: int32, m: int32>" : "", body.before, body.body, body.after, fmt::arg("n", n),
      fmt::arg("m", c.is_dynamic ? "m" : std::to_string(c.steps * 16 + 16)), fmt::arg("stages", c.stages));
  return replaced_in(replaced_in(text, "MORE", std::to_string(c.stages % 4 + 1)), "T", fmt::format("({} // 16)", n));
}

// How many numbers of steps the program tells: the most where all tiles are loaded by the threads.
void expect_bodies(Architecture architecture, const std::vector<LoopCase>& cases) {
  LoopMatrix matrix(architecture);
  for (const LoopBody& body : kBodies)
    for (const LoopCase& c : cases)
      matrix.add(
          c, [&](const LoopCase& one) { return body_text(body, one); }, body.name);
  matrix.compare();
}

class LoopBodies : public ::testing::TestWithParam<int64_t> {};

TEST_P(LoopBodies, AgreeWithTheInterpreter) {
  const LoopCase any{.stages = GetParam(), .is_dynamic = true};
  LoopCase told = any.known();
  told.steps = GetParam() == 2 ? 1 : GetParam() + 1;
  expect_bodies(Architecture::sm_80, {any, told});
  if (GetParam() > 1) expect_bodies(Architecture::sm_90a, {any});
}

INSTANTIATE_TEST_SUITE_P(Stages, LoopBodies, ::testing::Values(1, 2, 3, 4));

}  // namespace
}  // namespace tilepilot::testing
