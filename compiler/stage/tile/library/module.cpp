// Registration of the language: `tilelang`, `tilelang.language` and the small modules beside them.
#include <fmt/format.h>

#include <bit>

#include "compiler/stage/python/objects/native.h"
#include "compiler/stage/python/script.h"
#include "compiler/stage/tile/buffers/buffers.h"
#include "compiler/stage/tile/buffers/layouts.h"
#include "compiler/stage/tile/kernel/markers.h"
#include "compiler/stage/tile/library/dtypes.h"
#include "compiler/stage/tile/library/first_configuration.h"
#include "compiler/stage/tile/library/jit.h"
#include "compiler/stage/tile/library/prim_func.h"
#include "compiler/stage/tile/library/tvm.h"
#include "compiler/stage/tile/operators/tables.h"

namespace tilepilot::stage {
namespace {

constexpr LanguageSection kSections[] = {
    {"Launches, allocations, sizes", launch_functions},
    {"Copies", copy_functions},
    {"Products of tiles", gemm_functions},
    {"Reductions", reduction_functions},
    {"Loops", loop_functions},
    {"Persistent blocks", persistent_functions, true},
    {"Mathematics", maths_functions},
    {"Arithmetic by rounding mode", ieee_functions},
    {"Integers", integer_functions},
    {"Values", value_functions},
    {"Hints", hint_functions, true},
    {"Predicates of tiles", predicate_functions},
    {"Threads", thread_functions, true},
    {"Warps", warp_functions, true},
    {"Tensor cores of a warp", matrix_functions, true},
    {"Printing and checking", debug_functions},
    {"Rearranging tiles", rearranging_functions},
    {"Atomics", atomic_functions},
    {"Reductions over threads", all_reduce_functions, true},
    {"Scans", scan_functions},
    {"Views and workspaces", view_functions},
    {"Reads outside tensors", safe_value_functions},
    {"Memory by its address", address_functions, true},
    {"Layouts", layout_functions, true},
    {"Hardware barriers", barrier_functions, true},
    {"Asynchronous copies and gemms, warpgroups", async_functions, true},
    {"Foreign device source", foreign_functions, true},
    {"Reducers", reducer_functions},
};

// Names that are not functions of the tables.
constexpr TileName kOtherNames[] = {
    {"prim_func", "decorates a function that is a tile program"},
    {"macro", "decorates a function that is traced where it is called"},
    {"Tensor", "annotates a tensor parameter: `T.Tensor((M, K), dtype)` or `T.Tensor[[M, K], dtype]`"},
    {"Buffer", "the old name of `T.Tensor`; for `isinstance`, the type of buffers"},
    {"StridedTensor", "annotates a tensor with strides: `T.StridedTensor(shape, strides, dtype)`"},
    {"GemmWarpPolicy", "how `T.gemm` divides its work: `.Square`, `.FullRow`, `.FullCol`"},
    {"dtype", "the dtype that a value names: `T.dtype(\"float16\")`; the type of dtypes, for annotations"},
    {"ptr", "the dtype of addresses, which is int64: of a scalar parameter, or of a tensor of them"},
    {"dtypes", "the module of all dtypes"},
    {"fp8", "the module of `determine_fp8_type(format)` and `determine_torch_fp8_type(format)`"},
    {"PrimFunc", "the type of tile programs, for annotations"},
    {"PrimExpr", "the type of tile expressions, for annotations and `isinstance`"},
    {"Ref", "annotates a parameter of a macro that stands for the caller's variable, element or slice"},
    {"Var", "the old name of `T.Ref`; for `isinstance`, the type of variables such as extents known at run time"},
    {"SharedBuffer", "annotates a parameter of a macro: a tile in shared memory"},
    {"FragmentBuffer", "annotates a parameter of a macro: a tile in registers"},
    {"LocalBuffer", "annotates a parameter of a macro: an array of each thread's own"},
};

// `from_warp_partition(m_warp, n_warp)`: the policy that divides a product among so many warps.
Result<Value> policy_of_warps(Interpreter&, CallArgs& args) {
  static constexpr Signature kSignature{"from_warp_partition", {"m_warp", "n_warp"}, 2};
  const Arguments read = TRY(Arguments::read(args, kSignature));
  const int64_t rows = TRY(read.integer(0)), columns = TRY(read.integer(1));
  const ir::WarpPolicy policy = columns == 1 && rows > 1   ? ir::WarpPolicy::full_row
                                : rows == 1 && columns > 1 ? ir::WarpPolicy::full_col
                                                           : ir::WarpPolicy::square;
  return Value(static_cast<int64_t>(policy));
}

Value make_policies() {
  auto policies = std::make_shared<ModuleObject>("GemmWarpPolicy");
  policies->set("Square", Value(static_cast<int64_t>(ir::WarpPolicy::square)));
  policies->set("FullRow", Value(static_cast<int64_t>(ir::WarpPolicy::full_row)));
  policies->set("FullCol", Value(static_cast<int64_t>(ir::WarpPolicy::full_col)));
  policies->function("from_warp_partition", policy_of_warps);
  return policies;
}

Result<std::optional<Value>> missing_name(Interpreter&, Name name, Span span) {
  if (auto advice = unsupported_advice(name.text()))
    return make_error(DiagnosticKind::unsupported_tile_feature, span,
                      fmt::format("`T.{}` is not supported", name.text()), std::string(*advice));
  if (auto advice = foreign_advice(name.text()))
    return make_error(DiagnosticKind::unknown_tile_name, span, fmt::format("`T.` has no `{}`", name.text()),
                      std::string(*advice));
  std::vector<std::string_view> names;
  for (const TileName& row : tile_names()) names.push_back(row.name);
  std::string_view near = nearest_name(name.text(), names);
  return make_error(DiagnosticKind::unknown_tile_name, span, fmt::format("`T.` has no `{}`", name.text()),
                    near.empty() ? "" : fmt::format("did you mean `T.{}`?", near));
}

// The language's name of a dtype of torch: `torch.float16` is "float16".
struct TorchDTypeNames final : TypedObject<TorchDTypeNames> {
  static constexpr Type kType{"names of torch dtypes"};
  Result<Value> get_item(Interpreter& interpreter, const Value& key, Span) override {
    const std::string name = TRY(interpreter.str(key));
    return Value(name.substr(name.rfind('.') + 1));
  }
};

std::shared_ptr<ModuleObject> make_language(const ContextRef& context) {
  auto language = std::make_shared<ModuleObject>("tilelang.language");
  for (const LanguageSection& section : kSections)
    for (const TileFunction& row : section.table()) language->set(row.name, make_function(context, "T.", row));
  for (const NamedDType& row : dtype_names())
    language->set(row.name, Value(std::make_shared<DTypeObject>(*context, row.dtype)));
  auto dtypes = std::make_shared<ModuleObject>("tilelang.language.dtypes");
  for (const NamedDType& row : dtype_names()) dtypes->set(row.name, *language->members.find(Name(row.name)));
  const Value maker = std::make_shared<DTypeMaker>(*context);
  dtypes->set("dtype", maker);
  dtypes->set("_TORCH_DTYPE_TO_STR", Value(std::make_shared<TorchDTypeNames>()));
  language->set("dtypes", Value(dtypes));
  language->set("fp8", Value(make_fp8(*context)));
  for (const char* name : {"Tensor", "Buffer", "SharedBuffer", "FragmentBuffer", "LocalBuffer"})
    language->set(name, Value(std::make_shared<TensorSpecMaker>(*context, fmt::format("T.{}", name), false)));
  language->set("StridedTensor", Value(std::make_shared<TensorSpecMaker>(*context, "T.StridedTensor", true)));
  language->set("ptr", Value(std::make_shared<DTypeObject>(*context, ir::kInt64)));
  language->set("GemmWarpPolicy", make_policies());
  language->set("dtype", maker);
  for (const char* name : {"PrimFunc", "PrimExpr", "Ref", "Var"}) language->set(name, make_marker("T.", name));
  add_function_decorators(context, *language);
  language->missing = missing_name;
  return language;
}

// Every attribute is its own name: keys of `pass_configs`.
std::shared_ptr<ModuleObject> make_pass_config_keys() {
  auto keys = std::make_shared<ModuleObject>("PassConfigKey");
  keys->missing = [](Interpreter&, Name name, Span) { return Result<std::optional<Value>>(Value(name.str())); };
  return keys;
}

Result<Value> next_power_of_2(Interpreter&, CallArgs& args) {
  int64_t value = TRY(meta_integer(args.positional.empty() ? Value() : args.positional[0], "the argument", args.span));
  return Value(static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(std::max<int64_t>(value, 1)))));
}

std::shared_ptr<ModuleObject> make_math() {
  auto math = std::make_shared<ModuleObject>("tilelang.math");
  math->function("next_power_of_2", next_power_of_2);
  return math;
}

// Names of `tilelang` that live in modules of its own.
constexpr std::pair<std::string_view, std::string_view> kMoved[] = {
    {"autotune", "autotuner"},
    {"Profiler", "profiler"},
    {"TensorSupplyType", "utils"},
};

// For scripts: the modules written in Python, and what they hold.
Result<std::optional<Value>> missing_in_tilelang(const ContextRef& context, Name name, Span span) {
  Interpreter& interpreter = context->interpreter;
  for (const auto& [moved, module] : kMoved) {
    if (moved != name.text()) continue;
    auto found = TRY(find_part(interpreter, "tilelang", Name(module), span));
    if (found) return std::optional<Value>(TRY(found->get_attribute(interpreter, name, span)));
  }
  if (auto part = TRY(find_part(interpreter, "tilelang", name, span))) return std::optional<Value>(part);
  if (!interpreter.importer() && name.text() == "autotune")
    return std::optional<Value>(make_first_configuration_tuner(context));
  static constexpr std::string_view kKnown[] = {"autotune",  "profiler", "Profiler", "testing",
                                                "tools",     "lower",    "carver",   "autotuner",
                                                "transform", "engine",   "utils",    "TensorSupplyType"};
  for (std::string_view known : kKnown)
    if (known == name.text())
      return make_error(DiagnosticKind::unsupported_tile_feature, span,
                        fmt::format("`tilelang.{}` is not supported", name.text()));
  return std::optional<Value>();
}

Value nothing(std::string name) {
  return std::make_shared<BuiltinFunction>(std::move(name),
                                           [](Interpreter&, CallArgs&) { return Result<Value>(Value()); });
}

// `tilelang.jit`: the decorator, which is also the name of the module that has it.
struct JitDecorator final : TypedObject<JitDecorator> {
  static constexpr Type kType{"function"};
  JitDecorator(Value decorator_, std::shared_ptr<ModuleObject> module_)
      : decorator(std::move(decorator_)), module(std::move(module_)) {}
  Result<Value> call(Interpreter& interpreter, CallArgs args) override {
    return interpreter.call(decorator, std::move(args));
  }
  Result<Value> get_attribute(Interpreter& interpreter, Name name, Span span) override {
    return interpreter.get_attribute(name.text() == "__name__" ? decorator : Value(module), name, span);
  }
  Value decorator;
  std::shared_ptr<ModuleObject> module;
};

// For annotations and isinstance; called, it is `tilelang.compile`.
std::shared_ptr<ClassObject> kernel_class(Interpreter& interpreter, const Value& compile) {
  auto made = std::make_shared<ClassObject>();
  made->name = Name("JITKernel");
  made->resolution_order = {made.get()};
  made->sealed = true;
  made->construct = [compile](Interpreter& caller, CallArgs& args) { return caller.call(compile, std::move(args)); };
  interpreter.set_class(JitKernelObject::kType, made);
  return made;
}

// As upstream's, a dtype is a string.
void make_dtypes_strings(Interpreter& interpreter) {
  auto text = interpreter.find_builtin("str")->get_shared<ClassObject>();
  auto made = std::make_shared<ClassObject>();
  made->name = Name("dtype");
  made->bases = {text};
  made->resolution_order = {made.get()};
  made->resolution_order.insert(made->resolution_order.end(), text->resolution_order.begin(),
                                text->resolution_order.end());
  made->sealed = true;
  interpreter.set_class(DTypeObject::kType, made);
}

std::shared_ptr<ModuleObject> make_tilelang(const ContextRef& context) {
  auto tilelang = std::make_shared<ModuleObject>("tilelang");
  add_jit(context, *tilelang);
  static constexpr TileFunction kCdiv{"cdiv", "a, b", "a / b rounded up", [](TileArguments& arguments) {
                                        return ceil_divide(arguments.context(), arguments[0], arguments[1],
                                                           arguments.span());
                                      }};
  tilelang->set("cdiv", make_function(context, "tilelang.", kCdiv));
  for (const char* name : {"disable_cache", "enable_cache", "set_log_level"}) tilelang->set(name, nothing(name));
  tilelang->function("next_power_of_2", next_power_of_2);
  tilelang->set("PassConfigKey", make_pass_config_keys());
  tilelang->set("PrimFunc", make_marker("tilelang.", "PrimFunc"));
  tilelang->set("JITKernel", Value(kernel_class(context->interpreter, *tilelang->members.find(Name("compile")))));
  tilelang->set("cached", *tilelang->members.find(Name("compile")));
  tilelang->set("__version__", Value("0.1.13"));
  tilelang->set("__file__", Value("<tilelang>"));
  tilelang->set("DataType", Value(std::make_shared<DTypeMaker>(*context)));
  tilelang->missing = [context](Interpreter&, Name name, Span span) {
    return missing_in_tilelang(context, name, span);
  };
  return tilelang;
}

}  // namespace

std::span<const LanguageSection> language_sections() { return kSections; }
std::span<const TileName> other_names() { return kOtherNames; }

const std::vector<TileName>& tile_names() {
  static const std::vector<TileName> kNames = [] {
    std::vector<TileName> names;
    for (const LanguageSection& section : kSections)
      for (const TileFunction& row : section.table()) names.push_back({row.name, row.summary});
    for (const NamedDType& row : dtype_names())
      names.push_back({row.name, "a dtype; called, a cast; as an annotation, a scalar parameter"});
    names.insert(names.end(), std::begin(kOtherNames), std::end(kOtherNames));
    return names;
  }();
  return kNames;
}

std::shared_ptr<TileContext> install_tile_language(Interpreter& interpreter, TileOptions options) {
  auto context = std::make_shared<TileContext>(interpreter, std::move(options));
  make_dtypes_strings(interpreter);
  auto tilelang = make_tilelang(context);
  const std::pair<const char*, std::shared_ptr<ModuleObject>> submodules[] = {
      {"language", make_language(context)}, {"layout", make_layout_module(context)}, {"math", make_math()}};
  interpreter.add_module("tilelang", tilelang);
  for (const char* part : {"dtypes", "fp8"})
    interpreter.add_module(fmt::format("tilelang.language.{}", part),
                           submodules[0].second->members.find(Name(part))->get_shared<ModuleObject>());
  auto jit = std::make_shared<ModuleObject>("tilelang.jit");
  for (const char* name : {"jit", "compile", "par_compile", "JITKernel"})
    jit->set(name, *tilelang->members.find(Name(name)));
  interpreter.add_module("tilelang.jit", jit);
  tilelang->set("jit", Value(std::make_shared<JitDecorator>(*tilelang->members.find(Name("jit")), jit)));
  if (!interpreter.importer() && context->options.host) {
    auto autotuner = std::make_shared<ModuleObject>("tilelang.autotuner");
    autotuner->set("autotune", make_first_configuration_tuner(context));
    interpreter.add_module("tilelang.autotuner", autotuner);
  }
  auto tvm = make_tvm(context);
  tilelang->set("tvm", Value(tvm));
  interpreter.add_module("tvm", tvm);
  for (const char* name : {"target", "tirx", "tir"})
    interpreter.add_module(fmt::format("tvm.{}", name), tvm->members.find(Name(name))->get_shared<ModuleObject>());
  for (const auto& [name, module] : submodules) {
    tilelang->set(name, Value(module));
    interpreter.add_module(fmt::format("tilelang.{}", name), module);
  }
  return context;
}

}  // namespace tilepilot::stage
