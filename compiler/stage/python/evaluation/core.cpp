#include "compiler/stage/python/evaluation/core.h"

#include <fmt/format.h>
#include <pthread.h>

#include <algorithm>

#include "compiler/stage/python/evaluation/generator.h"
#include "compiler/stage/python/modules/standard.h"

namespace tilepilot::stage {

Core::Core(Interpreter& interpreter) : interpreter_(interpreter) {}

Core::~Core() {
  for (const std::weak_ptr<Object>& each : watched_) {
    if (ObjectRef object = each.lock()) object->release();
  }
}

std::shared_ptr<ClassObject> Core::add_class(std::string_view name, const Type* type,
                                             std::shared_ptr<ClassObject> base) {
  auto made = std::make_shared<ClassObject>();
  made->name = Name(name);
  made->resolution_order = {made.get()};
  if (!base) base = object_class_;
  if (base) {
    made->bases = {base};
    auto& order = made->resolution_order;
    order.insert(order.end(), base->resolution_order.begin(), base->resolution_order.end());
  } else {
    object_class_ = made;
  }
  if (type) by_type_[type] = made;
  watch(made);
  return made;
}

std::shared_ptr<ClassObject> Core::class_for(const Type& type, std::string_view shown_name) {
  auto found = by_type_.find(&type);
  if (found != by_type_.end()) return found->second;
  auto& made = anonymous_[std::string(shown_name)];
  if (!made) {
    made = add_class(shown_name, nullptr);
    made->sealed = true;
  }
  return made;
}

std::shared_ptr<const ScopeLayout> Core::layout_of(const syntax::ModuleRef& module) {
  Resolved& known = layouts_[module.get()];
  if (!known.layout) known = {module, resolve_names(*module)};
  return known.layout;
}

void Core::watch(const ObjectRef& object) {
  if (watched_.size() >= prune_at_) {
    std::erase_if(watched_, [](const std::weak_ptr<Object>& each) { return each.expired(); });
    prune_at_ = std::max<size_t>(256, watched_.size() * 2);
  }
  watched_.push_back(object);
}

void Core::enter_thread() {
  pthread_t self = pthread_self();
  if (stack_floor_ && stack_thread_ == self) return;
  stack_thread_ = self;
  stack_floor_ = 1;
  pthread_attr_t attributes;
  if (pthread_getattr_np(self, &attributes) != 0) return;
  void* lowest = nullptr;
  size_t size = 0;
  if (pthread_attr_getstack(&attributes, &lowest, &size) == 0) {
    // Room for what native code does below the deepest evaluation.
    size_t reserve = std::min<size_t>(size / 4, size_t{1} << 20);
    stack_floor_ = reinterpret_cast<uintptr_t>(lowest) + reserve;
  }
  pthread_attr_destroy(&attributes);
}

void Core::push_frame(Name function, Span call_span) { interpreter_.frames_.push_back({function, call_span}); }
void Core::pop_frame() { interpreter_.frames_.pop_back(); }
int64_t Core::exchange_steps(int64_t steps) { return std::exchange(interpreter_.steps_, steps); }

Result<FibreStack> Core::take_stack(Span span) {
  constexpr const char* kHint = "let generators end, or make lists of what they give";
  if (waiting.size() >= kMostFibres)
    return make_error(DiagnosticKind::recursion_limit, span,
                      fmt::format("more than {} generators are under way", kMostFibres), kHint);
  if (free_stacks_.empty()) {
    FibreStack made = FibreStack::allocate();
    if (!made.valid())
      return make_error(DiagnosticKind::recursion_limit, span, "there is no memory for another generator", kHint);
    return made;
  }
  FibreStack stack = std::move(free_stacks_.back());
  free_stacks_.pop_back();
  return stack;
}

void Core::give_stack(FibreStack stack) {
  constexpr size_t kKept = 8;
  if (free_stacks_.size() < kKept) free_stacks_.push_back(std::move(stack));
}

std::shared_ptr<ModuleObject> Core::standard_module(const std::string& name) {
  auto found = standard_modules_.find(name);
  if (found != standard_modules_.end()) return found->second;
  std::shared_ptr<ModuleObject> made = make_standard_module(interpreter_, name);
  if (!made) return nullptr;
  standard_modules_[name] = made;
  watch(made);
  return made;
}

}  // namespace tilepilot::stage
