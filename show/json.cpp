#include <nlohmann/json.hpp>

#include "compiler/layout/print.h"
#include "show/drawings.h"

namespace tilepilot::show {
namespace {

using nlohmann::json;

constexpr int64_t kMostRows = 64, kMostColumns = 64;  // of tables of elements

json json_of(const RegisterTile& tile) {
  const layout::Fragment& fragment = tile.fragment;
  const Grid grid(fragment.shape());
  const auto owners = first_owners(fragment);
  json rows = json::array();
  for (int64_t row = 0; row < std::min(grid.rows, kMostRows); ++row) {
    json cells = json::array();
    for (int64_t column = 0; column < std::min(grid.columns, kMostColumns); ++column) {
      const int64_t element = row * grid.columns + column;
      if (element >= static_cast<int64_t>(owners.size())) break;
      const layout::Place& owner = owners[static_cast<size_t>(element)];
      cells.push_back(owner.thread < 0 ? json() : json({tile.first_thread + owner.thread, owner.reg}));
    }
    rows.push_back(std::move(cells));
  }
  return {{"name", tile.name},
          {"type", tile.type},
          {"role", tile.role},
          {"line", tile.line},
          {"shape", fragment.shape()},
          {"threads", fragment.thread_count()},
          {"registers", fragment.register_count()},
          {"replicas", fragment.replicas()},
          {"layout", layout::to_text(fragment)},
          {"thread_and_register", std::move(rows)},
          {"cropped", grid.rows > kMostRows || grid.columns > kMostColumns}};
}

json json_of(const SharedPicture& tile) {
  const Grid grid(tile.layout.shape());
  json rows = json::array();
  for (int64_t row = 0; row < std::min(grid.rows, kMostRows); ++row) {
    json cells = json::array();
    for (int64_t column = 0; column < std::min(grid.columns, kMostColumns); ++column)
      if (row * grid.columns + column < layout::volume(tile.layout.shape()))
        cells.push_back(tile.layout.offset(row * grid.columns + column) * tile.layout.element_bits() / 8);
    rows.push_back(std::move(cells));
  }
  json accesses = json::array();
  for (const SharedAccess& access : tile.accesses)
    accesses.push_back({{"line", access.line},
                        {"what", access.what},
                        {"writes", access.writes},
                        {"width", access.width},
                        {"instructions", access.instructions},
                        {"bytes", access.bytes},
                        {"wavefronts", access.wavefronts},
                        {"conflicts", access.conflicts},
                        {"degree", access.degree()}});
  return {{"name", tile.name},
          {"type", tile.type},
          {"line", tile.line},
          {"shape", tile.layout.shape()},
          {"offset", tile.offset},
          {"bytes", tile.bytes},
          {"stages", tile.stages},
          {"swizzle", static_cast<int64_t>(tile.layout.span())},
          {"layout", layout::to_text(tile.layout)},
          {"shares_memory_with", tile.shares},
          {"by_tma", tile.by_tma},
          {"byte_of_element", std::move(rows)},
          {"cropped", grid.rows > kMostRows || grid.columns > kMostColumns},
          {"accesses", std::move(accesses)}};
}

json json_of(const Timeline& timeline) {
  json rows = json::array();
  for (const TimelineRow& row : timeline.rows) {
    json segments = json::array();
    for (const Segment& segment : row.segments)
      segments.push_back({{"begin", segment.begin},
                          {"end", segment.end},
                          {"activity", std::string(name_of(segment.activity))},
                          {"what", segment.what},
                          {"line", segment.line},
                          {"count", segment.count},
                          {"bytes", segment.bytes}});
    json shown = {{"label", row.label}, {"group", row.group}, {"segments", std::move(segments)}};
    if (row.warp >= 0) shown["warp"] = row.warp;
    if (row.stage >= 0) shown["stage"] = row.stage;
    rows.push_back(std::move(shown));
  }
  return {{"unit", timeline.unit},
          {"cycles", timeline.cycles},
          {"tensor_busy", timeline.tensor_busy},
          {"copies_under_products", timeline.copies_under_products},
          {"is_cut", timeline.is_cut},
          {"steps", timeline.steps},
          {"unplaced", timeline.unplaced},
          {"rows", std::move(rows)}};
}

json json_of(const RooflinePicture& roofline) {
  json ceilings = json::array();
  for (const Ceiling& ceiling : roofline.ceilings)
    ceilings.push_back({{"name", ceiling.name}, {"flops_per_s", ceiling.flops_per_s}});
  return {{"machine", roofline.machine},
          {"bytes_per_s", roofline.bytes_per_s},
          {"ceilings", std::move(ceilings)},
          {"bytes", roofline.bytes},
          {"requested_bytes", roofline.requested_bytes},
          {"flops", roofline.flops},
          {"exact", roofline.exact},
          {"intensity", roofline.intensity()},
          {"seconds", roofline.seconds},
          {"time_from", roofline.time_from},
          {"bound", roofline.bound}};
}

json json_of(const KernelPicture& kernel) {
  json shown = {{"name", kernel.name},     {"line", kernel.line},       {"facts", kernel.facts},
                {"notes", kernel.notes},   {"defects", kernel.defects}, {"registers", json::array()},
                {"shared", json::array()}, {"choices", json::array()}};
  for (const RegisterTile& tile : kernel.registers) shown["registers"].push_back(json_of(tile));
  for (const SharedPicture& tile : kernel.shared) shown["shared"].push_back(json_of(tile));
  for (const ChoicePicture& choice : kernel.choices)
    shown["choices"].push_back(
        {{"line", choice.line}, {"what", choice.what}, {"chosen", choice.chosen}, {"obstacles", choice.obstacles}});
  shown["timeline"] = kernel.timeline ? json_of(*kernel.timeline) : json();
  shown["roofline"] = kernel.roofline ? json_of(*kernel.roofline) : json();
  const std::pair<const char*, const std::string&> missing[] = {{"no_registers", kernel.no_registers},
                                                                {"no_shared", kernel.no_shared},
                                                                {"no_timeline", kernel.no_timeline},
                                                                {"no_roofline", kernel.no_roofline}};
  for (const auto& [key, why] : missing)
    if (!why.empty()) shown[key] = why;
  return shown;
}

}  // namespace

json to_json(const Picture& picture) {
  json kernels = json::array();
  for (const KernelPicture& kernel : picture.kernels) kernels.push_back(json_of(kernel));
  return {{"file", picture.file}, {"call", picture.call}, {"target", picture.target}, {"kernels", std::move(kernels)}};
}

}  // namespace tilepilot::show
