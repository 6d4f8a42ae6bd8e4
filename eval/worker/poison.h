// Fresh memory that is visibly not a result: while on, whatever LibTorch allocates is filled with NaN first, so that
// elements a candidate never writes cannot hold what an earlier run left there.
#pragma once

namespace tilepilot::eval {

// Puts itself under LibTorch's CPU allocator, once, for the life of the process.
void install_poison();
void set_poison(bool on);

}  // namespace tilepilot::eval
