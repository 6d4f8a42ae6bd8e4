#include "cli/mcp/tool_schema.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

#include "cli/command_table.h"

namespace tilepilot::cli::mcp {
namespace {

using nlohmann::json;

const CLI::App& command_of(const CLI::App& app, const Tool& tool) {
  const CLI::App* command = &app;
  for (std::string_view word : tool.command) command = command->get_subcommand(std::string(word));
  return *command;
}

std::string json_type(const CLI::Option& option) {
  if (option.get_expected_max() == 0) return "boolean";
  const std::string type = option.get_type_name();
  if (type.starts_with("INT") || type.starts_with("UINT")) return "integer";
  return type.starts_with("FLOAT") ? "number" : "string";
}

// Where the parser names bounds: "INT in [1 - 1000]", "POSITIVE".
void add_bounds(const CLI::Option& option, json& schema) {
  const std::string type = option.get_type_name();
  double least = 0, most = 0;
  if (const size_t at = type.find(" in ["); at != std::string::npos) {
    if (std::sscanf(type.c_str() + at, " in [%lf - %lf]", &least, &most) != 2) return;
    schema["minimum"] = least;
    schema["maximum"] = most;
  } else if (type.find(":POSITIVE") != std::string::npos) {
    schema["exclusiveMinimum"] = 0;
  } else if (type.find(":NONNEGATIVE") != std::string::npos || type.starts_with("UINT")) {
    schema["minimum"] = 0;
  }
}

json default_of(const std::string& type, const std::string& text) {
  if (text.empty() || type == "boolean") return nullptr;
  if (type == "string") return text;
  json number = json::parse(text, nullptr, /*allow_exceptions*/ false);
  return number.is_number() ? number : json();
}

std::string with_full_stop(std::string text) {
  if (!text.empty() && text.back() != '.') text += '.';
  return text;
}

void add_file(const CLI::Option& option, const ToolFile& file, json& properties) {
  const std::string path(file.argument), source = path + std::string(kSourceSuffix);
  properties[path] = {{"type", "string"},
                      {"description", fmt::format("{} Its path; or give its text as `{}`.",
                                                  with_full_stop(option.get_description()), source)}};
  properties[source] = {{"type", "string"},
                        {"description", fmt::format("The text of that file, instead of `{}`.", path)}};
}

json time_limit_schema(const Tool& tool) {
  json schema = {{"type", "number"},
                 {"exclusiveMinimum", 0},
                 {"maximum", kLongestCall},
                 {"description", "Longest time for this call, in seconds; then it is ended."}};
  if (tool.time_limit_s > 0) schema["default"] = tool.time_limit_s;
  return schema;
}

json output_schema(const Tool& tool) {
  json properties = json::object();
  for (const ToolOutput& output : tool.outputs)
    properties[std::string(output.name)] = {{"type", output.type}, {"description", output.meaning}};
  return {{"type", "object"}, {"properties", std::move(properties)}, {"required", {"ok"}}};
}

}  // namespace

const CLI::Option& option_of(const CLI::App& app, const Tool& tool, std::string_view name) {
  const std::string wanted(name);
  const CLI::Option* own = command_of(app, tool).get_option_no_throw(wanted);
  return own != nullptr ? *own : *app.get_option(wanted);
}

std::string argument_of(const CLI::Option& option) {
  std::string name = option.get_lnames().empty() ? option.get_name() : option.get_lnames().front();
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

json schema_of(const CLI::Option& option) {
  const std::string type = json_type(option);
  json schema = {{"type", type}, {"description", with_full_stop(option.get_description())}};
  if (const auto values = choices_of(option); !values.empty()) schema["enum"] = values;
  add_bounds(option, schema);
  if (json value = default_of(type, option.get_default_str()); !value.is_null()) schema["default"] = std::move(value);
  return schema;
}

std::string flag_of(const CLI::Option& option) {
  return option.get_lnames().empty() ? "" : "--" + option.get_lnames().front();
}

json input_schema(const Setup& setup, const Tool& tool) {
  const CLI::App& app = *setup.app;
  json properties = json::object(), required = json::array();
  for (const ToolFile& file : tool.files) add_file(option_of(app, tool, file.option), file, properties);
  for (const ToolOption& offered : tool.options) {
    const CLI::Option& option = option_of(app, tool, offered.name);
    json schema = schema_of(option);
    if (!offered.meaning.empty()) schema["description"] = offered.meaning;
    const auto usual = setup.defaults.find(flag_of(option));
    if (usual != setup.defaults.end()) schema["default"] = default_of(schema["type"], usual->second);
    if (option.get_required() && usual == setup.defaults.end()) required.push_back(argument_of(option));
    properties[argument_of(option)] = std::move(schema);
  }
  properties[std::string(kTimeLimit)] = time_limit_schema(tool);
  json schema = {{"type", "object"}, {"properties", std::move(properties)}, {"additionalProperties", false}};
  if (!required.empty()) schema["required"] = std::move(required);
  return schema;
}

json describe(const Setup& setup, const Tool& tool, Revision revision) {
  json row = {{"name", tool.name}, {"description", tool.description}, {"inputSchema", input_schema(setup, tool)}};
  if (has_annotations(revision))
    row["annotations"] = {{"title", tool.title},
                          {"readOnlyHint", !tool.writes},
                          {"destructiveHint", tool.writes},
                          {"idempotentHint", !tool.writes},
                          {"openWorldHint", tool.open_world}};
  if (has_structured_results(revision)) {
    row["title"] = tool.title;
    row["outputSchema"] = output_schema(tool);
  }
  return row;
}

}  // namespace tilepilot::cli::mcp
