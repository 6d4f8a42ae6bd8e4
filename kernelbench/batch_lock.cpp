#include "kernelbench/batch_lock.h"

#include <fmt/format.h>
#include <sys/socket.h>

#include <cerrno>

#include "compiler/runtime/abstract_address.h"
#include "compiler/runtime/sha256.h"

namespace tilepilot::kernelbench {

Result<eval::Descriptor> lock_batch(const std::filesystem::path& store, int64_t batch) {
  std::error_code ignored;
  const std::string file = std::filesystem::weakly_canonical(store, ignored).string();
  const std::string name =
      fmt::format("tilepilot-bench-{}", runtime::Sha256().add_field(file).add_field(std::to_string(batch)).hex());
  eval::Descriptor socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (socket.number() < 0) return socket;
  const runtime::AbstractAddress address(name);
  if (bind(socket.number(), address.get(), address.length()) != 0 && errno == EADDRINUSE)
    return make_error(DiagnosticKind::bad_usage, {}, fmt::format("batch {} is being run by another process", batch),
                      "wait until that ends, or begin another batch with `--new`");
  return socket;
}

}  // namespace tilepilot::kernelbench
