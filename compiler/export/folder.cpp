#include "compiler/export/folder.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <sstream>

#include "compiler/runtime/kernel_cache.h"
#include "compiler/runtime/owned_folder.h"
#include "compiler/runtime/sha256.h"
#include "compiler/source/file.h"

namespace tilepilot::exporting {
namespace {

namespace fs = std::filesystem;

constexpr const char* kList = ".tilepilot-export";

// Hashes by name. A name has two while a later export replaces an earlier one.
using FileList = std::map<std::string, std::set<std::string>>;

std::string hash_of(std::string_view content) { return runtime::Sha256().add(content).hex(); }

// Whoever wrote the list, nothing outside of the folder is ours.
bool stays_inside(const fs::path& name) {
  return name.is_relative() &&
         std::none_of(name.begin(), name.end(), [](const fs::path& part) { return part == ".."; });
}

FileList read_list(const fs::path& folder) {
  std::string text;
  FileList list;
  if (!read_file(folder / kList, text)) return list;
  std::istringstream lines(text);
  for (std::string hash, name; lines >> hash && std::getline(lines >> std::ws, name);)
    if (stays_inside(name)) list[name].insert(hash);
  return list;
}

std::string text_of(const FileList& list) {
  std::string text;
  for (const auto& [name, hashes] : list)
    for (const std::string& hash : hashes) text += fmt::format("{} {}\n", hash, name);
  return text;
}

Error unwritable(const fs::path& path, const std::string& why, std::string_view hint = {}) {
  return make_error(DiagnosticKind::output_unwritable, {}, fmt::format("cannot write `{}`: {}", path.string(), why),
                    hint);
}

// Whether the file is as an export wrote it.
bool is_ours(const fs::path& folder, const std::string& name, const FileList& list) {
  std::string content;
  const auto known = list.find(name);
  return known != list.end() && read_file(folder / name, content) && known->second.contains(hash_of(content));
}

Status check_name(const fs::path& folder, const std::string& name, const FileList& list) {
  std::error_code ignored;
  const auto kind = fs::symlink_status(folder / name, ignored).type();
  if (kind == fs::file_type::not_found || kind == fs::file_type::none) return {};
  if (kind == fs::file_type::regular && is_ours(folder, name, list)) return {};
  return unwritable(folder / name, "it is there, and no export wrote it as it is",
                    "export to another folder, or move the file away");
}

Status make_folder(const fs::path& folder) {
  std::error_code failed;
  fs::create_directories(folder, failed);
  std::error_code unknown;
  if (!fs::is_directory(folder, unknown)) return unwritable(folder, failed ? failed.message() : "it is no folder");
  return {};
}

Status put(const fs::path& path, std::string_view content) {
  std::string why;
  if (!write_file(path, content, &why)) return unwritable(path, why);
  return {};
}

void remove_old(const fs::path& folder, const FileList& before, const FileList& now) {
  std::error_code ignored;
  for (const auto& [name, hashes] : before) {
    if (now.contains(name) || !is_ours(folder, name, before)) continue;
    fs::remove(folder / name, ignored);
    const fs::path parent = (folder / name).parent_path();
    if (parent != folder && fs::is_empty(parent, ignored)) fs::remove(parent, ignored);
  }
}

}  // namespace

Status check_folder(const fs::path& folder, const std::vector<std::string>& names) {
  std::error_code ignored;
  const auto is_file = [&](const fs::path& path) {
    return fs::exists(path, ignored) && !fs::is_directory(path, ignored);
  };
  if (is_file(folder)) return unwritable(folder, "it is a file", "name a folder");
  const FileList list = read_list(folder);
  for (const std::string& name : names) {
    const fs::path parent = (folder / name).parent_path();
    if (parent != folder && fs::is_symlink(fs::symlink_status(parent, ignored)))
      return unwritable(parent, "it is a link", "export to another folder, or remove the link");
    if (is_file(parent)) return unwritable(parent, "it is a file", "export to another folder, or move the file away");
    TRY(check_name(folder, name, list));
  }
  return {};
}

Status write_folder(const fs::path& given, const std::vector<std::pair<std::string, std::string>>& files) {
  const fs::path folder = given.has_filename() ? given : given.parent_path();  // "folder/" is "folder"
  std::vector<std::string> names;
  FileList now;
  for (const auto& [name, content] : files) {
    names.push_back(name);
    now[name] = {hash_of(content)};
  }
  TRY(check_folder(folder, names));
  TRY(make_folder(folder));
  const FileList before = read_list(folder);
  runtime::remove_owned_folders(folder, runtime::is_dead);  // what an export that was killed left
  {
    // All of it is on the disk before the first file changes.
    auto workshop = runtime::TemporaryFolder::create(folder);
    if (!workshop.ok()) return unwritable(folder, workshop.error().message);
    for (const std::string& name : names) TRY(make_folder(((*workshop)->path() / name).parent_path()));
    for (const auto& [name, content] : files) TRY(put((*workshop)->path() / name, content));
    FileList both = before;
    for (const auto& [name, hashes] : now) both[name].insert(hashes.begin(), hashes.end());
    TRY(put(folder / kList, text_of(both)));
    for (const std::string& name : names) {
      TRY(make_folder((folder / name).parent_path()));
      std::error_code failed;
      fs::rename((*workshop)->path() / name, folder / name, failed);
      if (failed) return unwritable(folder / name, failed.message());
    }
  }
  remove_old(folder, before, now);
  return put(folder / kList, text_of(now));
}

}  // namespace tilepilot::exporting
