#include "eval/host/tensors/moved_tensors.h"

#include <ATen/Functions.h>
#include <ATen/core/grad_mode.h>

#include <map>
#include <set>

namespace tilepilot::eval {
namespace {

at::Tensor bytes_of(const c10::Storage& storage, c10::Device device) {
  const auto size = static_cast<int64_t>(storage.nbytes());
  return at::empty({0}, at::dtype(at::kByte).device(device)).set_(storage, 0, {size}, {1});
}

}  // namespace

void move_tensors(const std::vector<at::Tensor>& tensors, c10::Device device) {
  at::NoGradGuard no_grad;
  // The originals stay while others may share them.
  std::map<const c10::StorageImpl*, std::pair<c10::Storage, c10::Storage>> moved;
  std::set<const c10::TensorImpl*> done;
  for (const at::Tensor& tensor : tensors) {
    if (!tensor.defined() || !done.insert(tensor.unsafeGetTensorImpl()).second) continue;
    if (tensor.layout() != at::kStrided) {
      tensor.set_data(tensor.to(device));
      continue;
    }
    const c10::Storage storage = tensor.storage();
    auto& [original, place] = moved[storage.unsafeGetStorageImpl()];
    original = storage;
    if (!place) place = bytes_of(storage, tensor.device()).to(device, at::kByte, false, /*copy=*/true).storage();
    tensor.set_data(at::empty({0}, tensor.options().device(device).requires_grad(false))
                        .set_(place, tensor.storage_offset(), tensor.sizes(), tensor.strides()));
  }
}

}  // namespace tilepilot::eval
