// The extension `tilepilot._core`.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include "compiler/stage/tile/library/prim_func.h"
#include "python/extension/conversion.h"
#include "python/extension/errors.h"
#include "python/extension/function_source.h"
#include "python/extension/kernel.h"
#include "python/extension/python_reads.h"
#include "python/extension/session.h"
#include "python/extension/stage_value.h"
#include "python/extension/tensors.h"

namespace tilepilot::embedded {
extern const char tilepilot_package_torch_cuda[];
extern const char tilepilot_package_torch_profiler[];
}  // namespace tilepilot::embedded

namespace tilepilot::package {
namespace {

using stage::Value;

// A decorator of the language applied to a function of Python.
nb::object decorate(const char* decorator, nb::handle function) {
  const SessionLock lock;
  Session& session = Session::get();
  auto made = value_of(decorated_function(function));
  const Value apply = *session.interpreter().find_module("tilelang.language")->members.find(stage::Name(decorator));
  nb::object result = to_python(value_of(session.interpreter().call(apply, {{Value(made)}, {}, made->span, {}})));
  tell_warnings();
  return result;
}

void add_kernels(nb::module_& module) {
  nb::class_<Kernel>(module, "Kernel", "a compiled tile program")
      .def("__call__", &Kernel::call)
      .def("run", &Kernel::call_below_dispatch)
      .def("compile", &Kernel::compile)
      .def("source", &Kernel::source)
      .def("script", &Kernel::script)
      .def_prop_ro("name", &Kernel::name)
      .def_prop_ro("value", &Kernel::value, "as the language has it")
      .def_prop_ro("device", &Kernel::device)
      .def_prop_ro("target", &Kernel::target)
      .def_prop_ro("parameters", &Kernel::parameters)
      .def_prop_ro("outputs", &Kernel::outputs);
  nb::class_<JitFunction>(module, "JitFunction", "a function decorated with tilelang.jit")
      .def(nb::init<nb::object, const std::string&, bool>(), nb::arg("function"), nb::arg("target") = "auto",
           nb::arg("fast_math") = false)
      .def("__call__", &JitFunction::call)
      .def("arrange", &JitFunction::arrange)
      .def("compile", &JitFunction::compile)
      .def_prop_ro("is_eager", &JitFunction::is_eager);
  nb::class_<PythonReads>(module, "Reads", "what tile programs read outside of themselves")
      .def(nb::init<>())
      .def("begin", &PythonReads::begin)
      .def("end", &PythonReads::end)
      .def("note_outer_names", &PythonReads::note_outer_names)
      .def("are_as_noted", &PythonReads::are_as_noted);
  module.def("make_kernel", &make_kernel, nb::arg("program"), nb::arg("out_idx").none(), nb::arg("target") = "auto",
             nb::arg("fast_math") = false);
  nb::exception<NeedsDispatch>(module, "NeedsDispatch");
}

}  // namespace
}  // namespace tilepilot::package

NB_MODULE(_core, module) {
  using namespace tilepilot;
  using namespace tilepilot::package;
  nb::set_leak_warnings(false);  // what the session holds stays to the end
  add_stage_value(module);
  add_kernels(module);
  module.def("prim_func", [](nb::handle function) { return decorate("prim_func", function); });
  module.def("macro", [](nb::handle function) { return decorate("macro", function); });
  // A module of the language: "tilelang", "tilelang.language".
  module.def("module", [](const std::string& name) {
    const SessionLock lock;
    auto found = Session::get().interpreter().find_module(name);
    if (!found) throw nb::import_error(("the language has no module `" + name + "`").c_str());
    return nb::cast(StageValue{stage::Value(std::move(found))});
  });
  // The parts of `tilelang` that are written in Python, and stand-ins for parts of torch, as texts by their names.
  module.def("embedded_modules", [] {
    nb::dict texts;
    for (const stage::EmbeddedModule& each : stage::tile_modules())
      texts[nb::str(each.name.data(), each.name.size())] = nb::str(each.text);
    texts["torch.cuda"] = nb::str(embedded::tilepilot_package_torch_cuda);
    texts["torch.profiler"] = nb::str(embedded::tilepilot_package_torch_profiler);
    return texts;
  });
  module.def("let_gradients_end", &let_gradients_end);
  module.def("compile_seconds", &compile_seconds);
  module.def("language_names", [] {
    nb::list names;
    for (const stage::TileName& row : stage::tile_names()) names.append(nb::str(row.name.data(), row.name.size()));
    return names;
  });
  // Whether a function that was run as a factory turned out to be a tile program itself.
  module.def("missed_program", [] {
    const SessionLock lock;
    return std::exchange(Session::get().context().missed_program, false);
  });
  module.def("set_num_threads", [](int threads) { Session::get().set_threads(threads); });
  module.def("before_fork", &Session::before_fork);
  module.def("after_fork_in_parent", &Session::after_fork_in_parent);
  module.def("after_fork_in_child", &Session::after_fork_in_child);
}
