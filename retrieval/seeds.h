// The seeds that ship with TilePilot (`seeds/*.py`): hand-written programs whose module docstring carries their
// metadata.
#pragma once

#include <filesystem>

#include "retrieval/corpus.h"

namespace tilepilot::retrieval {

// Reads one seed file. Its docstring is a title line, then `key: value` lines: ops (space-separated ATen names in graph
// order), tags, dtype, licence (SPDX; default: that of TilePilot).
Result<Entry> read_seed(const std::filesystem::path& file);

// The model that an entry is a program for, as PyTorch's own Python runs it: what the entry says, else the text of its
// program up to the first kernel, without the imports that kernels alone need. Empty: there is none.
std::string model_of(const Entry& entry);

// Adds the seeds of a folder that the corpus does not have yet.
Status sync_seeds(Corpus& corpus, const std::filesystem::path& folder);

}  // namespace tilepilot::retrieval
