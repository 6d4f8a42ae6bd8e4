// Layouts that the program asks for (`T.annotate_layout`): found again among those that this target has, by where each
// element lies, and taken where instructions allow it.
#pragma once

#include <unordered_set>

#include "compiler/diagnostics/diagnostic.h"
#include "compiler/targets/gpu/layout/infer.h"

namespace tilepilot::targets::gpu {

// Fragments that are asked for; notes in `requests` why others are not to be had. What `inference` has for them already
// is demanded by instructions, which go first.
// @post separable, complete, of `threads` threads
std::vector<std::pair<ir::Buffer, layout::Fragment>> requested_fragments(const ir::Kernel& kernel, int64_t threads,
                                                                         Inference& inference);

// Sets `inference.tiles` where a request says otherwise and may; notes in `requests` what it could not.
// @pre every shared tile has a layout; GEMMs are planned
void lay_out_as_requested(const ir::Kernel& kernel, const std::unordered_set<const ir::BufferData*>& viewed,
                          Inference& inference);

bool is_as_requested(const Inference& inference, const ir::BufferData* tile);

// Warnings about requests that are met in none of the roles of a block, each once.
std::vector<Diagnostic> request_warnings(const std::vector<const Inference*>& roles);

}  // namespace tilepilot::targets::gpu
