// Runs kernels that are written in the text of a test, with every line of the text a line of the program.
#pragma once

#include <string>
#include <vector>

#include "compiler/emulator/emulator.h"

namespace tilepilot::emulator::testing {

// A kernel `main_0`; line 1 is the first line of the text. Where text marks a line with a comment `// name`, line_of
// finds it.
struct KernelText {
  std::string text;
  int64_t line_of(const std::string& name) const;
  // With all of `before` replaced.
  KernelText with(const std::string& before, const std::string& after) const;
};

struct Setting {
  int64_t threads = 32, shared_bytes = 0;
  std::array<int64_t, 3> grid{1, 1, 1};
  std::vector<int64_t> scalars{};
  Options options{};
  std::vector<TensorMap> maps{};
  bool cooperative = false;
  std::array<int64_t, 3> cluster{1, 1, 1};
};

class Buffers {
 public:
  template <class T>
  Buffers& add(const std::string& name, std::vector<T>& values, bool written = true) {
    given_.push_back({values.data(), static_cast<int64_t>(values.size() * sizeof(T)), name, written});
    return *this;
  }
  const std::vector<EmulatedBuffer>& given() const { return given_; }

 private:
  std::vector<EmulatedBuffer> given_;
};

// Fails the test if the text does not compile or the launch cannot be made.
Report run_kernel(const KernelText& kernel, const Setting& setting, const Buffers& buffers);

// "kind: message (first line, second line)" of each defect.
std::vector<std::string> told(const Report& report);

uint16_t to_half_bits(float x);
float from_half_bits(uint16_t bits);

}  // namespace tilepilot::emulator::testing
