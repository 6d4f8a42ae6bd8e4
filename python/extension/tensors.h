// The user's tensors as kernels see them, by the DLPack exchange of the array library, or by the attributes that every
// version of torch has. Nothing of LibTorch is linked, so that one wheel serves all versions.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include "compiler/runtime/kernel.h"
#include "compiler/stage/tile/tile.h"

namespace tilepilot::package {

namespace nb = nanobind;

// Whose memory holds a tensor: the processor's, or that of the GPU with this number.
struct Location {
  bool on_gpu = false;
  int number = 0;

  friend bool operator==(const Location&, const Location&) = default;
};
std::string to_string(Location location);  // as torch names it

struct TensorValue final : stage::TypedObject<TensorValue> {
  static constexpr stage::Type kType{"Tensor"};
  TensorValue(nb::object object_, runtime::TensorView view_, Location location_)
      : object(std::move(object_)), view(std::move(view_)), location(location_) {}
  Result<stage::Value> get_attribute(stage::Interpreter&, stage::Name name, Span span) override;
  Result<std::string> repr(stage::Interpreter&) override;
  const nb::object object;
  const runtime::TensorView view;
  const Location location;
};

// Null if `object` is no tensor. Raises for a tensor that no kernel can take: of another kind of device, sparse, or
// without memory of its own.
std::shared_ptr<TensorValue> tensor_value(nb::handle object);
// Whether it is a tensor of plain data, and not one that stands for another (a fake tensor, a subclass that
// dispatches).
bool is_plain_tensor(nb::handle object);
bool is_tensor(nb::handle object);
// Whether something looks on at all operators that are called: the recording of a graph, a transformation of functions
// (torch.func), gradients in forward mode.
bool is_watched();

// Tells autograd that a kernel wrote to a tensor: a backward pass that needs what it held before is refused.
void count_write(const TensorValue& tensor);

// Raises for a tensor whose gradient the caller wants: kernels have no backward pass.
void refuse_gradient(nb::handle tensor);
// From now on gradients end at kernels, as scripts for `tilelang` have it.
void let_gradients_end();

// The driver's stream that torch's operators on this GPU go to, in this thread.
void* current_stream(int gpu);

// Outputs are allocated at `location`.
std::unique_ptr<stage::TensorHost> make_tensor_host(Location location = {});

}  // namespace tilepilot::package
