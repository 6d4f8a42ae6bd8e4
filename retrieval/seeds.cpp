#include "retrieval/seeds.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <sstream>

#include "compiler/source/file.h"

namespace tilepilot::retrieval {
namespace {

constexpr const char* kLicence = "Apache-2.0";  // TilePilot's own

std::string trimmed(std::string_view text) {
  size_t begin = text.find_first_not_of(" \t\r");
  if (begin == std::string_view::npos) return {};
  return std::string(text.substr(begin, text.find_last_not_of(" \t\r") - begin + 1));
}

std::vector<std::string> words(const std::string& text) {
  std::istringstream stream(text);
  return {std::istream_iterator<std::string>(stream), {}};
}

// "int64:384" or "2048x512", which is of float32.
TensorShape shape_in(const std::string& text) {
  const size_t colon = text.find(':');
  TensorShape shape{colon == std::string::npos ? "float32" : text.substr(0, colon), {}};
  std::istringstream extents(colon == std::string::npos ? text : text.substr(colon + 1));
  for (std::string extent; std::getline(extents, extent, 'x');) shape.extents.push_back(std::atoll(extent.c_str()));
  return shape;
}

Error bad_seed(const std::filesystem::path& file, std::string_view problem) {
  return make_error(DiagnosticKind::value_error, {}, fmt::format("seed `{}` {}", file.string(), problem));
}

}  // namespace

Result<Entry> read_seed(const std::filesystem::path& file) {
  Entry entry{.name = file.stem().string(), .origin = "seed", .target = "cpu"};
  entry.licence = kLicence;
  if (!read_file(file, entry.source))
    return make_error(DiagnosticKind::file_not_found, {}, fmt::format("cannot read `{}`", file.string()));
  size_t end = entry.source.find("\"\"\"", 3);
  if (!entry.source.starts_with("\"\"\"") || end == std::string::npos) return bad_seed(file, "has no docstring");
  std::istringstream lines(entry.source.substr(3, end - 3));
  std::getline(lines, entry.summary);
  for (std::string line; std::getline(lines, line);) {
    size_t colon = line.find(':');
    if (colon == std::string::npos) continue;
    std::string key = trimmed(line.substr(0, colon)), value = trimmed(line.substr(colon + 1));
    if (key == "ops") {
      for (const std::string& op : words(value)) entry.structure.ops.push_back("aten::" + op);
    } else if (key == "tags") {
      entry.tags = words(value);
    } else if (key == "dtype") {
      entry.structure.dtype = value;
    } else if (key == "inputs") {
      for (const std::string& shape : words(value)) entry.inputs.push_back(shape_in(shape));
    } else if (key == "licence") {
      entry.licence = value;
    }
  }
  if (entry.structure.ops.empty()) return bad_seed(file, "names no `ops:`");
  // A seed is one chain: each operator feeds the next.
  for (size_t i = 1; i < entry.structure.ops.size(); ++i) {
    entry.structure.edges.emplace_back(entry.structure.ops[i - 1], entry.structure.ops[i]);
    entry.structure.links.emplace_back(static_cast<int>(i) - 1, static_cast<int>(i));
  }
  return entry;
}

std::string model_of(const Entry& entry) {
  if (!entry.model_source.empty()) return entry.model_source;
  std::string model;
  std::istringstream lines(entry.source);
  for (std::string line; std::getline(lines, line) && !line.starts_with("@tilelang");)
    if (!line.starts_with("import tilelang")) model += line + "\n";
  return model.find("class Model(") == std::string::npos ? std::string() : model;
}

Status sync_seeds(Corpus& corpus, const std::filesystem::path& folder) {
  std::error_code error;
  std::vector<std::filesystem::path> files;
  for (const auto& item : std::filesystem::directory_iterator(folder, error))
    if (item.path().extension() == ".py") files.push_back(item.path());
  std::sort(files.begin(), files.end());
  for (const auto& file : files) TRY(corpus.add(TRY(read_seed(file))));
  return {};
}

}  // namespace tilepilot::retrieval
