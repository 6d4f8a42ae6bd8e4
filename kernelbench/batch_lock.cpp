#include "kernelbench/batch_lock.h"

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstring>

#include "compiler/runtime/sha256.h"

namespace tilepilot::kernelbench {

Result<eval::Descriptor> lock_batch(const std::filesystem::path& store, int64_t batch) {
  std::error_code ignored;
  const std::string file = std::filesystem::weakly_canonical(store, ignored).string();
  const std::string name =
      fmt::format("tilepilot-bench-{}", runtime::Sha256().add_field(file).add_field(std::to_string(batch)).hex());
  eval::Descriptor socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (socket.number() < 0) return socket;
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  // An abstract name: it begins with a null byte, is no file, and is free again when its socket is closed.
  std::memcpy(address.sun_path + 1, name.data(), name.size());
  const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  if (bind(socket.number(), reinterpret_cast<const sockaddr*>(&address), length) != 0 && errno == EADDRINUSE)
    return make_error(DiagnosticKind::bad_usage, {}, fmt::format("batch {} is being run by another process", batch),
                      "wait until that ends, or begin another batch with `--new`");
  return socket;
}

}  // namespace tilepilot::kernelbench
