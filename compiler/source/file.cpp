#include "compiler/source/file.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <utility>

namespace tilepilot {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMostBytes = size_t{256} << 20;
constexpr std::chrono::seconds kPipePatience{10};

// A descriptor that closes itself.
class Opened {
 public:
  Opened(const fs::path& path, int flags, mode_t mode = 0)
      : descriptor_(::open(path.c_str(), flags | O_CLOEXEC, mode)) {}
  Opened(Opened&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
  Opened& operator=(Opened&&) = delete;
  ~Opened() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  explicit operator bool() const { return descriptor_ >= 0; }
  int get() const { return descriptor_; }
  bool close() { return ::close(std::exchange(descriptor_, -1)) == 0; }

 private:
  int descriptor_;
};

std::string reason() { return errno == ENOENT ? "there is no such file" : std::strerror(errno); }

// What a file is that is no regular one.
std::string kind_of(mode_t mode) {
  if (S_ISDIR(mode)) return "it is a folder";
  if (S_ISFIFO(mode)) return "it is a pipe";
  if (S_ISSOCK(mode)) return "it is a socket";
  if (S_ISBLK(mode)) return "it is a block device";
  return "it is a device";
}

// Empty, or why not all could be read.
std::string read_all(int descriptor, bool is_pipe, std::string& text) {
  const auto end = std::chrono::steady_clock::now() + kPipePatience;
  char buffer[1 << 16];
  for (;;) {
    if (is_pipe) {
      const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - std::chrono::steady_clock::now());
      pollfd waited{descriptor, POLLIN, 0};
      if (left.count() <= 0 || poll(&waited, 1, static_cast<int>(left.count())) == 0)
        return "it is a pipe that did not end within 10 s";
    }
    const ssize_t got = read(descriptor, buffer, sizeof buffer);
    if (got < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (got < 0) return reason();
    if (got == 0) return {};
    text.append(buffer, static_cast<size_t>(got));
    if (text.size() > kMostBytes) return "it is larger than 256 MB";
  }
}

std::string read_text(const fs::path& path, std::string& text) {
  struct stat status {};
  if (stat(path.c_str(), &status) != 0) return reason();
  const bool is_pipe = S_ISFIFO(status.st_mode);
  if (!S_ISREG(status.st_mode) && !is_pipe) return kind_of(status.st_mode);
  // A pipe that nobody writes to must not block where it is opened.
  Opened file(path, is_pipe ? O_RDONLY | O_NONBLOCK : O_RDONLY);
  if (!file) return reason();
  if (is_pipe) {  // until a writer comes, it would read as empty
    pollfd waited{file.get(), POLLIN, 0};
    if (poll(&waited, 1, static_cast<int>(std::chrono::milliseconds(kPipePatience).count())) == 0)
      return "it is a pipe that nobody writes to";
  }
  return read_all(file.get(), is_pipe, text);
}

bool write_all(int descriptor, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = write(descriptor, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return false;
    text.remove_prefix(static_cast<size_t>(written));
  }
  return true;
}

// The file that symbolic links lead to, be it there or not.
fs::path behind_links(fs::path path) {
  std::error_code error;
  for (int links = 0; links < 40 && fs::is_symlink(fs::symlink_status(path, error)); ++links) {
    const fs::path target = fs::read_symlink(path, error);
    if (error) break;
    path = target.is_absolute() ? target : path.parent_path() / target;
  }
  return path;
}

// Makes a fresh file beside `path` and says what it is called.
Opened open_beside(const fs::path& path, fs::path& beside) {
  for (int number = 0;; ++number) {
    beside = path;
    beside += ".partial" + std::to_string(gettid()) + "-" + std::to_string(number);
    Opened file(beside, O_WRONLY | O_CREAT | O_EXCL, 0666);
    // Another machine, or a run that was killed, may have made one of this name.
    if (file || errno != EEXIST || number == 99) return file;
  }
}

// Into a fresh file with these mode bits, which then takes the place of `path`. Empty, or why not.
std::string replace(const fs::path& path, std::string_view text, const struct stat* before) {
  fs::path beside;
  Opened file = open_beside(path, beside);
  if (!file) return reason();
  const bool as_before = before == nullptr || fchmod(file.get(), before->st_mode & 07777) == 0;
  const bool done =
      as_before && write_all(file.get(), text) && file.close() && rename(beside.c_str(), path.c_str()) == 0;
  if (done) return {};
  std::string why = reason();
  unlink(beside.c_str());
  return why;
}

std::string write_through(const fs::path& path, std::string_view text) {
  Opened file(path, O_WRONLY | O_NONBLOCK | O_NOCTTY);  // non-blocking: a pipe that nobody reads is an error
  if (!file) return errno == ENXIO ? "it is a pipe that nobody reads" : reason();
  fcntl(file.get(), F_SETFL, fcntl(file.get(), F_GETFL) & ~O_NONBLOCK);
  return write_all(file.get(), text) ? "" : reason();
}

bool takes_a_stream(mode_t mode) { return S_ISFIFO(mode) || S_ISCHR(mode); }

std::string write_text(const fs::path& path, std::string_view text) {
  struct stat status {};
  const bool exists = stat(path.c_str(), &status) == 0;
  if (!exists && errno == ELOOP) return reason();  // links that lead nowhere
  if (exists && takes_a_stream(status.st_mode)) return write_through(path, text);
  if (exists && !S_ISREG(status.st_mode)) return kind_of(status.st_mode);
  if (exists && access(path.c_str(), W_OK) != 0) return reason();
  return replace(behind_links(path), text, exists ? &status : nullptr);
}

bool succeeded(std::string why, std::string* told) {
  const bool done = why.empty();
  if (told != nullptr) *told = std::move(why);
  return done;
}

}  // namespace

bool read_file(const fs::path& path, std::string& text, std::string* why) {
  text.clear();
  return succeeded(read_text(path, text), why);
}

bool write_file(const fs::path& path, std::string_view text, std::string* why) {
  return succeeded(write_text(path, text), why);
}

std::string why_unwritable(const fs::path& path) {
  struct stat status {};
  const bool exists = stat(path.c_str(), &status) == 0;
  if (!exists && errno == ELOOP) return reason();
  if (exists && !S_ISREG(status.st_mode) && !takes_a_stream(status.st_mode)) return kind_of(status.st_mode);
  if (exists && access(path.c_str(), W_OK) != 0) return reason();
  if (exists && takes_a_stream(status.st_mode)) return {};
  fs::path beside;
  if (!open_beside(behind_links(path), beside)) return reason();
  unlink(beside.c_str());
  return {};
}

}  // namespace tilepilot
