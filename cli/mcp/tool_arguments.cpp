#include "cli/mcp/tool_arguments.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "cli/mcp/tool_schema.h"
#include "compiler/source/file.h"

namespace tilepilot::cli::mcp {
namespace {

using nlohmann::json;

constexpr size_t kLongestSource = size_t{4} << 20;  // bytes of a file's text

std::string article_of(const std::string& type) { return type == "integer" ? "an integer" : "a " + type; }

std::string shown(const json& value) {
  const std::string text = value.dump(-1, ' ', false, json::error_handler_t::replace);
  return text.size() > 60 ? text.substr(0, 60) + "..." : text;
}

// The arguments of one call, looked at one after another; what is wrong with them is collected.
class ArgumentReader {
 public:
  ArgumentReader(const Setup& setup, const Tool& tool, const json& arguments)
      : setup_(setup), tool_(tool), arguments_(arguments), schema_(input_schema(setup, tool)) {}

  Result<PlannedCommand> read() {
    look_for_others();
    read_time_limit();
    planned_.argv = {setup_.program.string()};
    planned_.argv.insert(planned_.argv.end(), tool_.command.begin(), tool_.command.end());
    planned_.argv.insert(planned_.argv.end(), {"--json", "--with-text"});
    planned_.argv.insert(planned_.argv.end(), setup_.given.begin(), setup_.given.end());
    planned_.argv.insert(planned_.argv.end(), tool_.always.begin(), tool_.always.end());
    for (const ToolOption& option : tool_.options) TRY(add_option(option_of(*setup_.app, tool_, option.name)));
    for (const ToolFile& file : tool_.files) TRY(add_file(file));
    if (tool_.writes) TRY(add_outputs());
    if (!problems_.empty())
      return make_error(DiagnosticKind::bad_usage, {}, fmt::format("{}", fmt::join(problems_, "; ")),
                        fmt::format("`{}` takes: {}", tool_.name, fmt::join(names(), ", ")));
    return std::move(planned_);
  }

 private:
  // Language models write null or nothing for what they leave out.
  bool has(std::string_view name) const {
    const auto found = arguments_.find(std::string(name));
    return found != arguments_.end() && !found->is_null() && *found != "";
  }
  const json& at(std::string_view name) const { return arguments_.at(std::string(name)); }

  std::vector<std::string> names() const {
    std::vector<std::string> all;
    for (const auto& [name, schema] : schema_["properties"].items()) all.push_back(name);
    return all;
  }

  void look_for_others() {
    const std::vector<std::string> known = names();
    const std::vector<std::string_view> candidates(known.begin(), known.end());
    for (const auto& [name, value] : arguments_.items()) {
      if (std::find(known.begin(), known.end(), name) != known.end()) continue;
      const std::string_view near = nearest_name(name, candidates);
      problems_.push_back(fmt::format("there is no argument `{}`{}", name,
                                      near.empty() ? "" : fmt::format("; did you mean `{}`?", near)));
    }
  }

  void read_time_limit() {
    planned_.time_limit_s = tool_.time_limit_s;
    if (!has(kTimeLimit)) return;
    const json& value = at(kTimeLimit);
    const double seconds = value.is_number() ? value.get<double>() : 0;
    if (seconds > 0 && seconds <= kLongestCall) {
      planned_.time_limit_s = seconds;
    } else {
      problems_.push_back(
          fmt::format("`{}` is {}; it takes a number of seconds, up to {}", kTimeLimit, shown(value), kLongestCall));
    }
  }

  // The value as a word of the command line. Nothing if it is of another type, which is noted.
  std::optional<std::string> word_of(const std::string& name) {
    const json& value = at(name);
    const json& schema = schema_["properties"][name];
    const std::string type = schema["type"];
    const bool is_whole = value.is_number_float() && std::trunc(value.get<double>()) == value.get<double>() &&
                          std::abs(value.get<double>()) < 1e15;
    const bool fits = type == "string"    ? value.is_string()
                      : type == "boolean" ? value.is_boolean()
                      : type == "integer" ? value.is_number_integer() || is_whole
                                          : value.is_number();
    if (!fits) {
      problems_.push_back(fmt::format("`{}` is {}; it takes {}", name, shown(value), article_of(type)));
      return std::nullopt;
    }
    if (schema.contains("enum") &&
        std::find(schema["enum"].begin(), schema["enum"].end(), value) == schema["enum"].end()) {
      problems_.push_back(fmt::format("`{}` is {}; it takes one of {}", name, shown(value), shown(schema["enum"])));
      return std::nullopt;
    }
    if (type == "integer" && is_whole) return std::to_string(value.get<int64_t>());
    if (!value.is_string()) return value.dump();
    const auto& text = value.get_ref<const std::string&>();
    // Command lines end words at a zero byte.
    if (text.find('\0') == std::string::npos) return text;
    problems_.push_back(fmt::format("`{}` holds a zero byte", name));
    return std::nullopt;
  }

  Status add_option(const CLI::Option& option) {
    const std::string name = argument_of(option);
    if (!has(name)) {
      if (const auto usual = setup_.defaults.find(flag_of(option)); usual != setup_.defaults.end())
        planned_.argv.push_back(usual->first + "=" + usual->second);
      else if (option.get_required())
        problems_.push_back(fmt::format("`{}` is missing", name));
      return {};
    }
    const auto word = word_of(name);
    if (!word) return {};
    if (option.get_positional()) {
      // The parser would take it for an option.
      if (word->starts_with("-")) problems_.push_back(fmt::format("`{}` is {}, which is no name", name, shown(*word)));
      planned_.argv.push_back(*word);
      return {};
    }
    const std::string flag = flag_of(option);
    if (option.get_expected_max() > 0) planned_.argv.push_back(flag + "=" + *word);
    if (option.get_expected_max() == 0 && *word == "true") planned_.argv.push_back(flag);
    return {};
  }

  // The path of a file of the call's own folder.
  Result<std::filesystem::path> own_file(const std::string& name) {
    if (!planned_.folder)
      planned_.folder = std::make_unique<agent::WorkFolder>(TRY(agent::WorkFolder::make(setup_.work_folder)));
    return planned_.folder->path() / name;
  }

  Result<std::string> written(const std::string& argument, const std::string& text) {
    const auto path = TRY(own_file(argument + ".py"));
    std::string why;
    if (!write_file(path, text, &why))
      return make_error(DiagnosticKind::output_unwritable, {},
                        fmt::format("cannot write `{}`: {}", path.string(), why));
    return path.string();
  }

  Status add_file(const ToolFile& file) {
    const CLI::Option& option = option_of(*setup_.app, tool_, file.option);
    const std::string name(file.argument), source = name + std::string(kSourceSuffix);
    if (has(name) && has(source))
      problems_.push_back(fmt::format("`{}` and `{}` are both given; give one of them", name, source));
    if (!has(name) && !has(source) && option.get_required())
      problems_.push_back(fmt::format("`{}` or `{}` is missing", name, source));
    if (!has(name) && !has(source)) return {};
    auto word = word_of(has(name) ? name : source);
    if (!word) return {};
    if (has(source) && word->size() > kLongestSource)
      problems_.push_back(fmt::format("`{}` has {} bytes; at most {} are taken", source, word->size(), kLongestSource));
    if (!problems_.empty()) return {};
    if (has(source)) word = TRY(written(name, *word));
    // A path is never an option.
    if (option.get_positional())
      planned_.argv.push_back(word->starts_with("-") ? "./" + *word : *word);
    else
      planned_.argv.push_back(option.get_name() + "=" + *word);
    return {};
  }

  // What is not named is not written: a program goes back as text, and there is no certificate.
  Status add_outputs() {
    if (!has("cert")) planned_.argv.emplace_back("--no-cert");
    TRY(add_language_model());
    if (has("output") || !problems_.empty()) return {};
    planned_.program = TRY(own_file("program"));
    planned_.argv.push_back("--output=" + planned_.program.string());
    return {};
  }

  Status add_language_model() {
    if (!problems_.empty()) return {};
    const std::string author = has("author") && at("author").is_string() ? at("author").get<std::string>() : "";
    if (author == "builtin") return {};
    if (setup_.language_model.empty() && !author.empty())
      return make_error(DiagnosticKind::bad_usage, {},
                        fmt::format("the author `{}` asks a language model, and this server has none", author),
                        "start `tilepilot mcp` with `--llm-url` and `--llm-model`, or leave `author` out");
    planned_.argv.insert(planned_.argv.end(), setup_.language_model.begin(), setup_.language_model.end());
    if (!setup_.language_model.empty() && !setup_.api_key.empty())
      planned_.environment.push_back("TILEPILOT_API_KEY=" + setup_.api_key);
    return {};
  }

  const Setup& setup_;
  const Tool& tool_;
  const json& arguments_;
  json schema_;
  PlannedCommand planned_;
  std::vector<std::string> problems_;
};

}  // namespace

Result<PlannedCommand> plan_command(const Setup& setup, const Tool& tool, const json& arguments) {
  return ArgumentReader(setup, tool, arguments).read();
}

}  // namespace tilepilot::cli::mcp
