#include "cli/store_warning.h"

#include <fmt/format.h>

#include "retrieval/network_file_system.h"

namespace tilepilot::cli {

void warn_of_shared_store(const Session& session) {
  const auto name = retrieval::shared_file_system_of(session.store_file());
  if (!name) return;
  session.progress(fmt::format(
      "warning: `{}` is on a file system that machines may share ({}), where SQLite's locks are not safe: let "
      "one machine write it at a time; on several, give each a `--store` and join them with `tilepilot bench "
      "merge`",
      session.store_file().string(), *name));
}

}  // namespace tilepilot::cli
