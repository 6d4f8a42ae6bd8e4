// The host room, seen from outside: gives an interpreter `torch`, whose tensors are LibTorch's and whose operators are
// resolved through ATen's own schemas. Plain: no LibTorch in this header. Code that needs the tensors themselves
// includes tensor_object.h.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "compiler/runtime/cuda/driver.h"
#include "compiler/stage/python/script.h"
#include "compiler/stage/tile/tile.h"

namespace tilepilot::eval {

class HostState;

struct TorchHostOptions {
  std::string device = "cpu";  // where tensors live; every device a program names is mapped to it
  std::shared_ptr<const runtime::cuda::Device> gpu = nullptr;  // that device, if it is a GPU: "cuda:0"
  // That device calls itself cuda:0, for programs that look whether they are on a GPU before they launch a kernel.
  bool shows_cuda = false;
  // A script that a person runs may do what a candidate may not: seed and count as on a GPU, use the clock, name
  // threads, compile functions (to themselves).
  bool is_script = false;
};

// The parts of torch, and the packages beside it, that are written in Python: for stage::Script.
std::vector<stage::EmbeddedModule> torch_modules();

// Must outlive the interpreter it is installed in. Belongs to the thread that makes it, which records no gradients
// while it lives.
class TorchHost {
 public:
  explicit TorchHost(TorchHostOptions options = {});
  ~TorchHost();
  TorchHost(const TorchHost&) = delete;

  // Registers `torch`, `torch.nn`, `torch.nn.functional` and the rest with the interpreter.
  void install(stage::Interpreter& interpreter);
  // How kernels reach these tensors.
  stage::TensorHost& tensors();
  // As torch.manual_seed.
  void seed(uint64_t seed);

  // A model for a GPU is built on the processor, whose random numbers its weights are, and moved: between `gather` and
  // `move_to`, tensors are noted as they are made; those that are still there then move, with what they share.
  void gather();
  Status move_to(const std::string& device);
  // Where new tensors live from now on. Gives where they lived so far.
  std::string use_device(const std::string& device);

  HostState& state() { return *state_; }

 private:
  std::unique_ptr<HostState> state_;
};

}  // namespace tilepilot::eval
