#include "eval/process/fork_server.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "compiler/untrusted/isolation.h"

namespace tilepilot::eval {
namespace {

// How long the server may take, loading LibTorch included.
constexpr double kForkLimit = 120;
// The candidate's socket, what else it inherits, and its output as the last one.
constexpr int kMostDescriptors = 8;

union SpaceForDescriptors {
  cmsghdr alignment;
  char bytes[CMSG_SPACE(sizeof(int) * kMostDescriptors)];
};

// One message, of descriptors alone beside one byte.
bool send_descriptors(int socket, const std::vector<int>& numbers) {
  char byte = 0;
  iovec piece{&byte, 1};
  SpaceForDescriptors control{};
  msghdr header{};
  header.msg_iov = &piece;
  header.msg_iovlen = 1;
  header.msg_control = control.bytes;
  header.msg_controllen = CMSG_SPACE(sizeof(int) * numbers.size());
  cmsghdr* entry = CMSG_FIRSTHDR(&header);
  entry->cmsg_level = SOL_SOCKET;
  entry->cmsg_type = SCM_RIGHTS;
  entry->cmsg_len = CMSG_LEN(sizeof(int) * numbers.size());
  std::memcpy(CMSG_DATA(entry), numbers.data(), sizeof(int) * numbers.size());
  ssize_t sent = 0;
  do sent = sendmsg(socket, &header, MSG_NOSIGNAL);
  while (sent < 0 && errno == EINTR);
  return sent == 1;
}

// In the server's memory, without any of the heap's: the next candidate would find it there.
struct Received {
  int numbers[kMostDescriptors];
  int count = 0;
};

bool receive_descriptors(int socket, Received& received) {
  char byte = 0;
  iovec piece{&byte, 1};
  SpaceForDescriptors control{};
  msghdr header{};
  header.msg_iov = &piece;
  header.msg_iovlen = 1;
  header.msg_control = control.bytes;
  header.msg_controllen = sizeof(control.bytes);
  ssize_t count = 0;
  do count = recvmsg(socket, &header, MSG_CMSG_CLOEXEC);
  while (count < 0 && errno == EINTR);
  const cmsghdr* entry = CMSG_FIRSTHDR(&header);
  if (count != 1 || entry == nullptr || entry->cmsg_type != SCM_RIGHTS) return false;
  received.count = static_cast<int>((entry->cmsg_len - CMSG_LEN(0)) / sizeof(int));
  std::memcpy(received.numbers, CMSG_DATA(entry), sizeof(int) * static_cast<size_t>(received.count));
  return received.count >= 2;
}

bool send_number(int socket, pid_t number) {
  return send(socket, &number, sizeof(number), MSG_NOSIGNAL) == static_cast<ssize_t>(sizeof(number));
}

// -1: none within the limit.
pid_t receive_number(int socket) {
  pid_t number = -1;
  const double deadline = monotonic_seconds() + kForkLimit;
  for (double left = kForkLimit; left > 0; left = deadline - monotonic_seconds()) {
    pollfd entry{socket, POLLIN, 0};
    const int ready = poll(&entry, 1, static_cast<int>(left * 1000) + 1);
    if (ready < 0 && errno == EINTR) continue;
    const bool whole = ready > 0 && recv(socket, &number, sizeof(number), 0) == static_cast<ssize_t>(sizeof(number));
    return whole ? number : -1;
  }
  return -1;
}

bool has_one_thread() {
  std::error_code error;
  const std::filesystem::directory_iterator threads("/proc/self/task", error);
  return !error && std::distance(begin(threads), end(threads)) == 1;
}

// What become_worker() of worker_process.cpp does for a program that is started.
void become_candidate(const Received& received) {
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  // If the judge ended before that took effect: its end of the socket is closed. From new namespaces getppid() tells
  // nothing.
  pollfd peer{received.numbers[0], 0, 0};
  if (poll(&peer, 1, 0) > 0 && (peer.revents & POLLHUP) != 0) _exit(127);
  int moved[kMostDescriptors];
  for (int i = 0; i < received.count; ++i) {
    moved[i] = fcntl(received.numbers[i], F_DUPFD_CLOEXEC, 64);
    if (moved[i] < 0) _exit(127);
  }
  const int output = moved[received.count - 1];
  if (dup2(output, STDOUT_FILENO) < 0 || dup2(output, STDERR_FILENO) < 0) _exit(127);
  int next = kWorkerSocket;
  for (int i = 0; i + 1 < received.count; ++i)
    if (dup2(moved[i], next++) < 0) _exit(127);
  untrusted::close_descriptors_from(next);
}

}  // namespace

Result<std::unique_ptr<ForkServer>> ForkServer::start(const std::filesystem::path& executable, int threads) {
  auto server = TRY(WorkerProcess::start(
      {.executable = executable, .role = kForkServer, .threads = threads, .dies_with_thread = true}));
  return std::make_unique<ForkServer>(std::move(server));
}

std::unique_ptr<WorkerProcess> ForkServer::fork(const std::vector<int>& descriptors, int output) {
  if (!server_) return nullptr;
  auto [ours, theirs] = socket_pair();
  std::vector<int> numbers = {theirs.number()};
  numbers.insert(numbers.end(), descriptors.begin(), descriptors.end());
  numbers.push_back(output);
  const int socket = server_->wire().descriptor();
  const bool asked = theirs.number() >= 0 && numbers.size() <= kMostDescriptors && send_descriptors(socket, numbers);
  const pid_t child = asked ? receive_number(socket) : -1;
  if (child > 0) return WorkerProcess::adopt(child, Wire(std::move(ours)));
  server_.reset();
  return nullptr;
}

bool serve_forks() {
  if (!has_one_thread()) _exit(1);
  Received received;
  while (receive_descriptors(kWorkerSocket, received)) {
    bool in_namespaces = false;
    const pid_t child = untrusted::fork_sibling_into_namespaces(in_namespaces);
    if (child == 0) {
      become_candidate(received);
      return in_namespaces;
    }
    for (int i = 0; i < received.count; ++i) close(received.numbers[i]);
    if (!send_number(kWorkerSocket, child)) break;
  }
  _exit(0);
}

}  // namespace tilepilot::eval
