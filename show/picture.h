// What `tilepilot show` draws: plain data, made from the compiler's own plans and from what the emulator saw. Lines are
// those of the file that is shown; 0: none of it.
#pragma once

#include <array>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "compiler/layout/fragment.h"
#include "compiler/layout/shared_layout.h"

namespace tilepilot::show {

// A tile in registers.
struct RegisterTile {
  std::string name, type;
  std::string role;  // the threads that hold it: "consumer"
  int line = 0;
  int64_t first_thread = 0;  // of the role, in the block
  layout::Fragment fragment;
};

// What warps do to a shared tile at one line of the program, in one way.
struct SharedAccess {
  int line = 0;
  std::string what;  // "ldmatrix"
  bool writes = false;
  int64_t width = 0;  // bytes of a lane
  int64_t instructions = 0, bytes = 0;
  int64_t wavefronts = 0, conflicts = 0;  // the latter are part of the former
  // Wavefronts for each that would do: 1 without conflicts.
  double degree() const {
    return wavefronts > conflicts ? static_cast<double>(wavefronts) / static_cast<double>(wavefronts - conflicts) : 1;
  }
};

struct SharedPicture {
  std::string name, type;
  int line = 0;
  int64_t offset = 0, bytes = 0;  // in the block's shared memory
  int64_t stages = 1;             // of a ring buffer; the first axis counts them
  layout::SharedLayout layout;
  std::vector<std::string> shares;     // tiles that lie in the same memory at other times
  std::vector<SharedAccess> accesses;  // as the emulator saw them; those of TMA and wgmma are not counted there
  bool by_tma = false;                 // TMA reads or writes it
};

// `await`: a wait for matrix products that the warp has issued.
enum class Activity : uint8_t { copy, wait, await, product, global, shared, math, other };
std::string_view name_of(Activity activity);

// Cycles of the model, from the start of the block.
struct Segment {
  double begin = 0, end = 0;
  Activity activity = Activity::other;
  int line = 0;
  std::string what;
  int64_t count = 1;  // instructions
  int64_t bytes = 0;
};

struct TimelineRow {
  std::string label;
  std::string group;  // a warp role, "in flight"
  int64_t warp = -1;
  int64_t stage = -1;  // of copies into a ring buffer
  std::vector<Segment> segments;
};

struct Timeline {
  std::string unit;
  double cycles = 0;
  double from = 0;                   // where a drawing of it begins
  double tensor_busy = 0;            // the share of the tensor cores' time in which they work
  double copies_under_products = 0;  // the share of the copies' time in which tensor cores work
  bool is_cut = false;               // the emulator stopped before the block's end
  int64_t unplaced = 0;              // steps that never come, as where a block waits for ever
  int64_t steps = 0;                 // of warps, that the emulator recorded
  std::vector<TimelineRow> rows;
};

struct Ceiling {
  std::string name;  // "tensor cores, float16"
  double flops_per_s = 0;
};

struct RooflinePicture {
  std::string machine;
  double bytes_per_s = 0;
  std::vector<Ceiling> ceilings;  // the first is the kernel's own
  double bytes = 0, flops = 0;    // of a launch; bytes that must move, each once
  double requested_bytes = 0;
  bool exact = true;
  double seconds = 0;     // of a launch; 0: there is no time
  std::string time_from;  // "the tile model", "measured on ..."
  std::string bound;      // what the model says the time goes to
  double intensity() const { return bytes > 0 ? flops / bytes : 0; }
};

struct ChoicePicture {
  int line = 0;
  std::string what, chosen;
  std::vector<std::string> obstacles;
};

struct KernelPicture {
  std::string name;  // "matmul_kernel", its number in the program after that if it is one of several
  int line = 0;
  std::vector<std::string> facts;  // "grid 8 x 8", "128 threads"
  std::vector<ChoicePicture> choices;
  std::vector<RegisterTile> registers;
  std::vector<SharedPicture> shared;
  std::optional<Timeline> timeline;
  std::optional<RooflinePicture> roofline;
  // Why a drawing is missing, and what is to be known of one.
  std::string no_registers, no_shared, no_timeline, no_roofline;
  std::vector<std::string> defects, notes;
};

struct Picture {
  std::string file, call, target;
  std::string text;  // of the file
  std::vector<KernelPicture> kernels;
};

nlohmann::json to_json(const Picture& picture);

}  // namespace tilepilot::show
