// What a candidate's process keeps of the machine once it knows its target: its memory, its threads, its sockets to the
// judge and to the compiler, the time; on a GPU the driver too.
#pragma once

#include <filesystem>
#include <vector>

#include "compiler/untrusted/isolation.h"

namespace tilepilot::eval {

// Puts it on this process, for good. Call it before there are threads, but where a GPU is used after the driver has
// been opened, which needs more; `libraries`: folders from which that loads more libraries later.
untrusted::Layers confine_candidate(bool in_namespaces, bool uses_gpu,
                                    const std::vector<std::filesystem::path>& libraries);

// What that adds to the start and the end of a process on a processor: the median over pairs, with it and without.
double seconds_of_confinement(int pairs = 30);

}  // namespace tilepilot::eval
