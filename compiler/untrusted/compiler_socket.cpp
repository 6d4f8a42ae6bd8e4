#include "compiler/untrusted/compiler_socket.h"

#include <fmt/format.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstring>

namespace tilepilot::untrusted {
namespace {

constexpr std::string_view kScheme = "socket:";
constexpr uint64_t kMaxFields = 256;
constexpr uint64_t kMaxBytes = uint64_t{1} << 28;
constexpr const char* kForms[] = {"library", "cubin"};
constexpr const char* kForeign = "foreign";

union Control {
  cmsghdr alignment;
  char bytes[CMSG_SPACE(sizeof(int))];
};

bool send_bytes(int socket, std::string_view bytes, int descriptor) {
  while (!bytes.empty()) {
    iovec piece{const_cast<char*>(bytes.data()), bytes.size()};
    msghdr header{};
    header.msg_iov = &piece;
    header.msg_iovlen = 1;
    Control control{};
    if (descriptor >= 0) {
      header.msg_control = control.bytes;
      header.msg_controllen = sizeof(control.bytes);
      cmsghdr* entry = CMSG_FIRSTHDR(&header);
      entry->cmsg_level = SOL_SOCKET;
      entry->cmsg_type = SCM_RIGHTS;
      entry->cmsg_len = CMSG_LEN(sizeof(int));
      std::memcpy(CMSG_DATA(entry), &descriptor, sizeof(int));
    }
    const ssize_t count = sendmsg(socket, &header, MSG_NOSIGNAL);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    descriptor = -1;
    bytes.remove_prefix(static_cast<size_t>(count));
  }
  return true;
}

bool receive_bytes(int socket, char* into, size_t size, int& descriptor) {
  while (size > 0) {
    iovec piece{into, size};
    msghdr header{};
    header.msg_iov = &piece;
    header.msg_iovlen = 1;
    Control control{};
    header.msg_control = control.bytes;
    header.msg_controllen = sizeof(control.bytes);
    const ssize_t count = recvmsg(socket, &header, MSG_CMSG_CLOEXEC);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    const cmsghdr* entry = CMSG_FIRSTHDR(&header);
    if (entry != nullptr && entry->cmsg_level == SOL_SOCKET && entry->cmsg_type == SCM_RIGHTS) {
      int arrived = -1;
      std::memcpy(&arrived, CMSG_DATA(entry), sizeof(int));
      if (descriptor >= 0) close(descriptor);
      descriptor = arrived;
    }
    into += count;
    size -= static_cast<size_t>(count);
  }
  return true;
}

void add_number(std::string& bytes, uint64_t number) {
  bytes.append(reinterpret_cast<const char*>(&number), sizeof(number));
}

bool receive_texts(int socket, Fields& fields) {
  uint64_t count = 0, left = kMaxBytes;
  const auto number = [&](uint64_t& into) {
    return receive_bytes(socket, reinterpret_cast<char*>(&into), sizeof(into), fields.descriptor);
  };
  if (!number(count) || count > kMaxFields) return false;
  for (; count > 0; --count) {
    uint64_t size = 0;
    if (!number(size) || size > left) return false;
    left -= size;
    fields.texts.emplace_back(size, '\0');
    if (!receive_bytes(socket, fields.texts.back().data(), size, fields.descriptor)) return false;
  }
  return true;
}

Error no_answer() {
  return make_error(DiagnosticKind::worker_unavailable, {}, "the process that compiles kernels does not answer");
}

Error error_of(const Fields& fields) {
  if (fields.texts.size() < 4) return no_answer();
  Error error = make_error(DiagnosticKind::compiler_failed, {}, fields.texts[2], fields.texts[3]);
  for (const DiagnosticKindInfo& known : diagnostic_kinds())
    if (known.name == fields.texts[1]) error->kind = known.kind;
  for (size_t k = 4; k < fields.texts.size(); ++k) error->note({}, fields.texts[k]);
  return error;
}

}  // namespace

std::string compiler_at_socket(int socket) { return fmt::format("{}{}", kScheme, socket); }

std::optional<int> socket_of(std::string_view compiler) {
  int socket = -1;
  if (!compiler.starts_with(kScheme)) return std::nullopt;
  compiler.remove_prefix(kScheme.size());
  const auto read = std::from_chars(compiler.begin(), compiler.end(), socket);
  return read.ec == std::errc() && read.ptr == compiler.end() ? std::optional(socket) : std::nullopt;
}

bool send_fields(int socket, const Fields& fields) {
  std::string bytes;
  add_number(bytes, fields.texts.size());
  for (const std::string& text : fields.texts) {
    add_number(bytes, text.size());
    bytes += text;
  }
  return send_bytes(socket, bytes, fields.descriptor);
}

std::optional<Fields> receive_fields(int socket) {
  Fields fields;
  if (receive_texts(socket, fields)) return fields;
  if (fields.descriptor >= 0) close(fields.descriptor);
  return std::nullopt;
}

Result<MemoryFile> ask_compiler(int socket, const CompileRequest& request) {
  Fields fields{{kForms[static_cast<int>(request.form)], request.architecture, request.source}, -1};
  fields.texts.insert(fields.texts.end(), request.flags.begin(), request.flags.end());
  if (!send_fields(socket, fields)) return no_answer();
  const auto answer = receive_fields(socket);
  if (!answer || answer->texts.empty()) return no_answer();
  auto code = MemoryFile::taken(answer->descriptor);
  if (code && answer->texts[0] == "ok") return *std::move(code);
  return error_of(*answer);
}

bool tell_foreign_source(int socket) {
  return send_fields(socket, {{kForeign}, -1}) && receive_fields(socket).has_value();
}

std::optional<Asked> next_request(int socket) {
  auto fields = receive_fields(socket);
  if (!fields) return std::nullopt;
  if (fields->descriptor >= 0) close(fields->descriptor);
  auto& texts = fields->texts;
  if (texts.size() == 1 && texts[0] == kForeign) {
    if (!send_fields(socket, {{"ok"}, -1})) return std::nullopt;
    return Asked{};
  }
  if (texts.size() < 3 || (texts[0] != kForms[0] && texts[0] != kForms[1])) return std::nullopt;
  CompileRequest request{texts[0] == kForms[0] ? CodeForm::library : CodeForm::cubin, texts[1], {}, {}};
  request.source = std::move(texts[2]);
  request.flags.assign(texts.begin() + 3, texts.end());
  return Asked{std::move(request)};
}

bool answer_request(int socket, const Result<MemoryFile>& made) {
  if (made.ok()) return send_fields(socket, {{"ok"}, made->descriptor()});
  const Diagnostic& error = made.error();
  Fields fields{{"failed", std::string(info(error.kind).name), error.message, error.hint}, -1};
  for (const Note& note : error.notes) fields.texts.push_back(note.message);
  return send_fields(socket, fields);
}

}  // namespace tilepilot::untrusted
