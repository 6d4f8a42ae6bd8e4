// SQLite keeps its file whole by locks of the file system. On one that several machines share, those locks may be
// missing, or work on each machine alone; writers on two machines can then damage the file. It is told, not refused: a
// database with one writer is safe.
//
// TilePilot's databases use SQLite's rollback journal everywhere. The other kind, a write-ahead log, needs memory that
// all writers share, and fails across machines on every such file system.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string_view>

namespace tilepilot::retrieval {

// The name of a file system that other machines may share, by the magic number that statfs() gives; nullopt: any other.
std::optional<std::string_view> shared_file_system(uint64_t magic);

// Where a file is, or will be: its folder's, or that of the nearest folder above that is there.
std::optional<std::string_view> shared_file_system_of(const std::filesystem::path& file);

}  // namespace tilepilot::retrieval
