#include "python/extension/session.h"

#include <unistd.h>

#include <cstdlib>
#include <mutex>
#include <thread>

#include "compiler/runtime/library.h"
#include "python/extension/errors.h"
#include "python/extension/imports.h"
#include "python/extension/tensors.h"

namespace tilepilot::package {
namespace {

// As many threads as torch's operators use.
int torch_threads() {
  const nb::object torch = nb::module_::import_("sys").attr("modules").attr("get")("torch");
  return torch.is_none() ? 0 : nb::cast<int>(torch.attr("get_num_threads")());
}

// The launch of a kernel: others may run Python meanwhile, and a fork waits for it.
thread_local PyThreadState* launching = nullptr;

void on_launch(bool begins) {
  std::shared_mutex& launches = Session::get().launches();
  if (begins) {
    launching = PyEval_SaveThread();
    launches.lock_shared();
  } else {
    launches.unlock_shared();
    GilRelease::take_back(std::exchange(launching, nullptr));
  }
}

void print(const char* stream, const std::string& text) {
  const nb::object file = nb::module_::import_("sys").attr(stream);
  if (!file.is_none()) file.attr("write")(nb::str(text.c_str(), text.size()));
}

}  // namespace

Session* Session::made_ = nullptr;

Session& Session::get() {
  if (made_ == nullptr) made_ = new Session();  // under the GIL
  return *made_;
}

Session::Session()
    : host_(make_tensor_host()),
      mutex_(std::make_unique<std::recursive_mutex>()),
      launches_(std::make_unique<std::shared_mutex>()) {
  interpreter_ = std::make_unique<stage::Interpreter>(sources_);
  open_backend();
  stage::TileOptions options;
  options.backend = backend_.get();
  options.host = host_.get();
  options.raw_memory = true;  // the program is the user's own
  options.on_launch = [](const ir::Program&, bool begins) { on_launch(begins); };
  context_ = stage::install_tile_language(*interpreter_, std::move(options));
  install_imports(*interpreter_);
  interpreter_->set_print([](const std::string& text) { print("stdout", text); });
  interpreter_->set_print_error([](const std::string& text) { print("stderr", text); });
}

void Session::open_backend() {
  backend_ = runtime::cpu_backend({.compiler = {}, .cache = runtime::default_cache_directory(), .extra_flags = {}});
  if (context_) context_->options.backend = backend_.get();
}

void Session::set_threads(int threads) {
  threads_ = threads;
  parallel_for_ = nullptr;
}

const runtime::ParallelFor& Session::parallel_for() {
  if (!parallel_for_) parallel_for_ = runtime::thread_pool(threads_ > 0 ? threads_ : torch_threads());
  return parallel_for_;
}

void Session::before_fork() {
  if (made_ == nullptr) return;
  const GilRelease release;
  made_->mutex_->lock();
  made_->launches_->lock();
}

void Session::after_fork_in_parent() {
  if (made_ == nullptr) return;
  made_->launches_->unlock();
  made_->mutex_->unlock();
}

void Session::after_fork_in_child() {
  if (made_ != nullptr) made_->leave_threads_behind();
}

// The threads are the parent's. What they may have held stays behind, never to be used or destroyed again.
void Session::leave_threads_behind() {
  if (parallel_for_) new runtime::ParallelFor(std::move(parallel_for_));
  parallel_for_ = nullptr;
  (void)launches_.release();
  (void)mutex_.release();
  (void)backend_.release();
  launches_ = std::make_unique<std::shared_mutex>();
  mutex_ = std::make_unique<std::recursive_mutex>();
  open_backend();
}

namespace {
thread_local int lock_depth = 0;
}

SessionLock::SessionLock() : mutex_(*Session::get().mutex_) {
  if (!mutex_.try_lock()) {
    const GilRelease release;
    mutex_.lock();
  }
  if (lock_depth++ > 0) return;
  Session::get().interpreter().renew_steps();
  Session::get().python_exception.reset();
}

SessionLock::~SessionLock() {
  --lock_depth;
  mutex_.unlock();
}

void GilRelease::take_back(PyThreadState* state) {
#if PY_VERSION_HEX >= 0x030D0000
  while (Py_IsFinalizing()) pause();
#else
  while (_Py_IsFinalizing()) pause();
#endif
  PyEval_RestoreThread(state);
}

}  // namespace tilepilot::package
