#include "retrieval/network_file_system.h"

#include <sys/vfs.h>

#include <algorithm>
#include <iterator>
#include <utility>

namespace tilepilot::retrieval {
namespace {

// Numbers of <linux/magic.h> and of the file systems' own sources.
constexpr std::pair<uint32_t, std::string_view> kShared[] = {
    {0x00006969, "NFS"},    {0x0000517b, "SMB"},    {0xff534d42, "CIFS"},  {0xfe534d42, "SMB"},
    {0x65735546, "FUSE"},   {0x0bd00bd0, "Lustre"}, {0x47504653, "GPFS"},  {0x00c36400, "Ceph"},
    {0x01021997, "9P"},     {0x5346414f, "AFS"},    {0x6b414653, "AFS"},   {0x19830326, "BeeGFS"},
    {0xaad7aaea, "PanFS"},  {0x73757245, "Coda"},   {0x7461636f, "OCFS2"}, {0x01161970, "GFS2"},
    {0x786f4256, "vboxsf"}, {0xbacbacbc, "vmhgfs"}, {0x013111a8, "IBRIX"}, {0x20030528, "OrangeFS"},
};

}  // namespace

std::optional<std::string_view> shared_file_system(uint64_t magic) {
  // The kernel's field is signed, and wider on some machines.
  const auto* found = std::find_if(std::begin(kShared), std::end(kShared),
                                   [&](const auto& each) { return each.first == static_cast<uint32_t>(magic); });
  return found == std::end(kShared) ? std::nullopt : std::optional(found->second);
}

std::optional<std::string_view> shared_file_system_of(const std::filesystem::path& file) {
  std::error_code error;
  auto folder = std::filesystem::absolute(file, error).parent_path();
  while (!std::filesystem::is_directory(folder, error) && folder.has_relative_path()) folder = folder.parent_path();
  struct statfs about {};
  if (statfs(folder.c_str(), &about) != 0) return std::nullopt;
  return shared_file_system(static_cast<uint64_t>(about.f_type));
}

}  // namespace tilepilot::retrieval
