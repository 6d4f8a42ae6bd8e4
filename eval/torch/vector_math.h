// The vector math of MKL, which ATen's operators on the processor call from several threads.
#pragma once

namespace tilepilot::eval {

// Has MKL choose its functions for exp, log and the others, as one thread. Else it chooses at the first call of each,
// and where two threads make it together, one of them can get a function of low accuracy for its share: half of a
// tensor is off by 1e-4, in one of ten new processes. (pytorch/pytorch issue 188792.) Call it before the first
// operator.
void settle_vector_math();

}  // namespace tilepilot::eval
