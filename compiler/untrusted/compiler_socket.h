// How a process that may not start programs has source compiled: it asks another one over a socket, text fields one
// way, text fields and a sealed file of memory the other way.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/diagnostics/result.h"
#include "compiler/untrusted/memory_file.h"

namespace tilepilot::untrusted {

// Instead of a compiler's path, "socket:5" names the socket to ask.
std::string compiler_at_socket(int socket);
// The socket's number; nullopt: it is a path.
std::optional<int> socket_of(std::string_view compiler);

enum class CodeForm { library, cubin };

struct CompileRequest {
  CodeForm form = CodeForm::library;
  std::string architecture;  // of a cubin: "sm_90a"
  std::vector<std::string> flags;
  std::string source;
};

// Errors: those of the compiler; worker_unavailable if nobody answers.
Result<MemoryFile> ask_compiler(int socket, const CompileRequest& request);
// Says that the process brings device source of its own: to be sent before such source can run.
bool tell_foreign_source(int socket);

// The answering side.
struct Asked {
  std::optional<CompileRequest> request;  // none: foreign source was told of
};
// Nullopt: the other side is gone, or sent what is no request.
std::optional<Asked> next_request(int socket);
bool answer_request(int socket, const Result<MemoryFile>& made);

// Fields of text, beside them a descriptor or -1. False, nullopt: the other side is gone, or what it sends is none.
struct Fields {
  std::vector<std::string> texts;
  int descriptor = -1;  // the caller's to close
};
bool send_fields(int socket, const Fields& fields);
std::optional<Fields> receive_fields(int socket);

}  // namespace tilepilot::untrusted
