#include "python/extension/session.h"

#include <unistd.h>

#include <cstdlib>
#include <mutex>
#include <optional>
#include <thread>

#include "compiler/runtime/library.h"
#include "python/extension/errors.h"
#include "python/extension/imports.h"
#include "python/extension/python_reads.h"
#include "python/extension/tensors.h"

namespace tilepilot::package {
namespace {

void take_gil(PyThreadState* state) {
#if PY_VERSION_HEX >= 0x030D0000
  while (Py_IsFinalizing()) pause();
#else
  while (_Py_IsFinalizing()) pause();
#endif
  PyEval_RestoreThread(state);
}

// As many threads as torch's operators use.
int torch_threads() {
  const nb::object torch = nb::module_::import_("sys").attr("modules").attr("get")("torch");
  return torch.is_none() ? 0 : nb::cast<int>(torch.attr("get_num_threads")());
}

// Without the GIL, but nothing that a fork would wait for.
class GilRelease {
 public:
  GilRelease() : state_(PyEval_SaveThread()) {}
  ~GilRelease() { take_gil(state_); }
  GilRelease(const GilRelease&) = delete;

 private:
  PyThreadState* state_;
};

void print(const char* stream, const std::string& text) {
  const nb::object file = nb::module_::import_("sys").attr(stream);
  if (!file.is_none()) file.attr("write")(nb::str(text.c_str(), text.size()));
}

}  // namespace

Session* Session::made_ = nullptr;

Session& Session::get() {
  if (made_ != nullptr) return *made_;
  auto* session = new Session();  // calls Python, which may let another thread come here
  if (made_ == nullptr) made_ = session;
  return *made_;
}

Session::Session()
    : host_(make_tensor_host()),
      mutex_(std::make_unique<std::recursive_mutex>()),
      native_gate_(std::make_unique<NativeGate>()) {
  interpreter_ = std::make_unique<stage::Interpreter>(sources_);
  backend_ = runtime::cpu_backend({.compiler = {}, .cache = runtime::default_cache_directory(), .extra_flags = {}});
  stage::TileOptions options;
  options.backend = backend_.get();
  options.host = host_.get();
  options.raw_memory = true;                     // the program is the user's own
  options.on_launch = guard_launch<NativeWork>;  // others may run Python meanwhile
  options.outer_reads = [] { return std::make_shared<PythonReads>(); };
  context_ = stage::install_tile_language(*interpreter_, std::move(options));
  stage::install_tuning(*interpreter_);
  install_imports(*interpreter_);
  interpreter_->set_print([](const std::string& text) { print("stdout", text); });
  interpreter_->set_print_error([](const std::string& text) { print("stderr", text); });
}

void Session::set_threads(int threads) {
  threads_ = threads;
  if (!parallel_for_) return;
  // Launches that are about to begin find a pool: they cannot make one, without the GIL.
  runtime::ParallelFor pool = runtime::thread_pool(threads > 0 ? threads : torch_threads());
  std::optional<GilRelease> waiting(std::in_place);
  const std::lock_guard entrance(native_gate_->entrance);
  const std::lock_guard nobody_inside(native_gate_->inside);
  waiting.reset();
  parallel_for_.swap(pool);
}

const runtime::ParallelFor& Session::parallel_for() {
  if (parallel_for_) return parallel_for_;
  const int threads = threads_ > 0 ? threads_ : torch_threads();  // other threads may come here while Python runs
  if (!parallel_for_) parallel_for_ = runtime::thread_pool(threads);
  return parallel_for_;
}

void Session::before_fork() {
  if (made_ == nullptr) return;
  const GilRelease release;
  made_->mutex_->lock();
  made_->native_gate_->entrance.lock();
  made_->native_gate_->inside.lock();
}

void Session::after_fork_in_parent() {
  if (made_ == nullptr) return;
  made_->native_gate_->inside.unlock();
  made_->native_gate_->entrance.unlock();
  made_->mutex_->unlock();
}

void Session::after_fork_in_child() {
  if (made_ != nullptr) made_->leave_threads_behind();
}

// The threads of the pool are the parent's, and so is the owner of the locks: they stay behind, never to be used or
// destroyed again.
void Session::leave_threads_behind() {
  gpus_.leave_behind();
  if (parallel_for_) new runtime::ParallelFor(std::move(parallel_for_));
  parallel_for_ = nullptr;
  (void)native_gate_.release();
  (void)mutex_.release();
  native_gate_ = std::make_unique<NativeGate>();
  mutex_ = std::make_unique<std::recursive_mutex>();
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

NativeWork::NativeWork() : state_(PyEval_SaveThread()) {
  Session::NativeGate& gate = Session::get().native_gate();
  const std::lock_guard entered(gate.entrance);
  gate.inside.lock_shared();
}

NativeWork::~NativeWork() {
  Session::get().native_gate().inside.unlock_shared();
  take_gil(state_);
}

}  // namespace tilepilot::package
