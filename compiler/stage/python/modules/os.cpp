// `os` and `os.path`: names of files as text, whether one exists, and an environment that starts empty.
#include <filesystem>

#include "compiler/stage/python/containers/containers.h"
#include "compiler/stage/python/modules/system.h"
#include "compiler/stage/python/objects/native.h"

namespace tilepilot::stage {

namespace {

namespace fs = std::filesystem;

// A function of one path.
template <class Answer>
BuiltinFunction::Body of_path(const char* name, Answer answer) {
  return [name, answer](Interpreter&, CallArgs& args) -> Result<Value> {
    const Signature signature{name, {"path"}, 1};
    Arguments read = TRY(Arguments::read(args, signature));
    return answer(TRY(read.text(0)));
  };
}

// Where the last component begins.
size_t base_at(const std::string& path) {
  size_t slash = path.rfind('/');
  return slash == std::string::npos ? 0 : slash + 1;
}

std::string directory(const std::string& path) {
  std::string head = path.substr(0, base_at(path));
  size_t last = head.find_last_not_of('/');
  return last == std::string::npos ? head : head.substr(0, last + 1);
}

std::string without_end_slash(std::string path) {
  if (path.size() > 1 && path.back() == '/') path.pop_back();
  return path;
}

std::string absolute(const std::string& path) {
  return without_end_slash(fs::absolute(path).lexically_normal().string());
}

// Links resolved, as far as there are files of that name.
std::string real(const std::string& path) {
  std::error_code error;
  fs::path found = fs::weakly_canonical(fs::absolute(path), error);
  return error ? absolute(path) : without_end_slash(found.string());
}

Value split_extension(const std::string& path) {
  size_t base = path.find_first_not_of('.', base_at(path)), dot = path.rfind('.');
  if (base == std::string::npos || dot == std::string::npos || dot < base) return make_tuple({Value(path), Value("")});
  return make_tuple({Value(path.substr(0, dot)), Value(path.substr(dot))});
}

Value split_name(const std::string& path) {
  return make_tuple({Value(directory(path)), Value(path.substr(base_at(path)))});
}

template <bool (*question)(const fs::path&, std::error_code&)>
Value asked(const std::string& path) {
  std::error_code error;
  return Value(question(path, error));
}

Result<Value> join(Interpreter&, CallArgs& args) {
  fs::path joined;
  for (const Value& each : args.positional) {
    auto* part = each.if_string();
    if (!part) return type_error(args.span, "join() arguments must be str");
    joined /= *part;
  }
  return Value(joined.string());
}

}  // namespace

void fill_os_path(Interpreter&, ModuleObject& module) {
  module.function("join", join);
  module.function("dirname", of_path("dirname", [](const std::string& path) { return Value(directory(path)); }));
  module.function("basename",
                  of_path("basename", [](const std::string& path) { return Value(path.substr(base_at(path))); }));
  module.function("abspath", of_path("abspath", [](const std::string& path) { return Value(absolute(path)); }));
  module.function("realpath", of_path("realpath", [](const std::string& path) { return Value(real(path)); }));
  module.function("normpath", of_path("normpath", [](const std::string& path) {
                    return Value(without_end_slash(fs::path(path.empty() ? "." : path).lexically_normal().string()));
                  }));
  module.function("splitext", of_path("splitext", split_extension));
  module.function("split", of_path("split", split_name));
  module.function("exists", of_path("exists", asked<fs::exists>));
  module.function("isfile", of_path("isfile", asked<fs::is_regular_file>));
  module.function("isdir", of_path("isdir", asked<fs::is_directory>));
  module.set("sep", Value("/"));
}

void fill_os(Interpreter&, ModuleObject& module) {
  auto environment = std::make_shared<DictObject>();
  module.set("environ", environment);
  module.function("getenv", [environment](Interpreter& interpreter, CallArgs& args) -> Result<Value> {
    return environment->call_method(interpreter, Name("get"), args, args.span);
  });
  module.set("sep", Value("/"));
  module.set("linesep", Value("\n"));
  module.set("name", Value("posix"));
}

}  // namespace tilepilot::stage
