#include "compiler/emulator/global_memory.h"

namespace tilepilot::emulator {

GlobalMemory::GlobalMemory(const EmulatedArguments& arguments, const Options& options) {
  for (const EmulatedBuffer& given : arguments.buffers) {
    buffers_.push_back({given, nullptr});
    if (options.check_races || options.check_uninitialised)
      buffers_.back().shadow =
          std::make_unique<Shadow>(view_, given.bytes, given.written || !options.check_uninitialised);
  }
}

}  // namespace tilepilot::emulator
