#include "launch/secret.h"

#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>

#include "durable_file.h"
#include "sha256.h"

namespace sgtc::runtime {
namespace {

constexpr size_t kSecretBytes = 32;
constexpr size_t kMostBytes = 4096;

bool is_own_folder(const std::string& path) {
  struct stat status = {};
  return stat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode) && status.st_uid == geteuid();
}

// The file of a job whose ranks are all on this machine and have one user.
std::string local_secret_path(const std::string& job) {
  const char* runtime = std::getenv("XDG_RUNTIME_DIR");
  const std::string folder = runtime && is_own_folder(runtime) ? runtime : "/tmp";
  return folder + "/sgtc-" + std::to_string(geteuid()) + "-" +
         sha256_hex(job.data(), job.size()).substr(0, 32) + ".secret";
}

// Checks that nobody else reads or writes the open file.
MaybeFailure check_access(int file, const std::string& path) {
  struct stat status = {};
  if (fstat(file, &status) != 0) return Failure{path, "cannot be read: " + system_error(), {}};
  if (!S_ISREG(status.st_mode)) return Failure{path, "is not a file, expected a secret", {}};
  if (status.st_uid != geteuid() && status.st_uid != 0) {
    return Failure{path, "holds a secret and belongs to another user",
                   "remove it, or give another file with --secret-file"};
  }
  if ((status.st_mode & 077) == 0) return {};
  return Failure{path,
                 format("holds a secret and is open to others: mode %03o, expected 600",
                        status.st_mode & 0777),
                 "chmod 600 " + path};
}

MaybeFailure read_file(const std::string& path, int flags, std::string& secret) {
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | flags);
  if (file < 0) return Failure{path, "cannot be read: " + system_error(), {}};
  MaybeFailure failure = check_access(file, path);
  char text[kMostBytes + 1];
  const ssize_t length = failure ? 0 : read(file, text, sizeof text);
  close(file);
  if (failure) return failure;
  secret.assign(text, static_cast<size_t>(length > 0 ? length : 0));
  while (!secret.empty() && static_cast<unsigned char>(secret.back()) <= ' ') secret.pop_back();
  if (!secret.empty() && secret.size() <= kMostBytes) return {};
  return Failure{path, format("expected a secret of 1 to %zu bytes", kMostBytes), {}};
}

MaybeFailure write_secret(const std::string& path) {
  const int file = open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (file < 0) return Failure{path, "cannot be created: " + system_error(), {}};
  const std::string text = hexadecimal(random_bytes(kSecretBytes)) + "\n";
  const bool written = write(file, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  if (close(file) == 0 && written) return {};
  return Failure{path, "cannot be written: " + system_error(), {}};
}

// Gives the written file its name. One that is there already stays, unless it is temporary: that
// one is left from an earlier job.
bool place_file(const SecretSource& source, const std::string& written) {
  const char* from = written.c_str();
  const char* to = source.path.c_str();
  if (!source.temporary && (link(from, to) == 0 || errno == EEXIST)) return true;
  return rename(from, to) == 0;
}

MaybeFailure create_file(const SecretSource& source) {
  const std::string written = source.path + "." + std::to_string(getpid());
  unlink(written.c_str());
  if (MaybeFailure failure = write_secret(written)) return failure;
  const bool placed = place_file(source, written);
  const std::string error = system_error();
  unlink(written.c_str());
  if (placed) return {};
  return Failure{source.path, "cannot be created: " + error, "give a secret with --secret-file"};
}

}  // namespace

MaybeFailure find_secret(const LaunchEnvironment& environment, const JobOptions& options,
                         SecretSource& source) {
  source = {};
  if (!options.secret_file.empty()) {
    source.path = options.secret_file;
  } else if (!environment.secret.empty()) {
    source.value = environment.secret;
  } else if (environment.one_host) {
    source = {{}, local_secret_path(environment.job), true, true};
  } else if (!options.checkpoint.empty()) {
    source = {{}, options.checkpoint + "/.secret", true, false};
  } else {
    return Failure{"the job", "may span several hosts and has no shared secret",
                   "give all ranks the same one with --secret-file FILE or SGTC_SECRET, or a "
                   "folder that all hosts share with --checkpoint"};
  }
  return {};
}

MaybeFailure provide_secret(const SecretSource& source, std::string& secret) {
  if (source.from_rank_0) {
    if (MaybeFailure failure = make_folders(parent_folder(source.path))) return failure;
    if (MaybeFailure failure = create_file(source)) return failure;
  }
  return read_secret(source, secret);
}

MaybeFailure read_secret(const SecretSource& source, std::string& secret) {
  secret = source.value;
  if (!secret.empty()) return {};
  if (!source.from_rank_0) return read_file(source.path, 0, secret);
  if (access(source.path.c_str(), F_OK) != 0 && errno == ENOENT) return {};
  return read_file(source.path, O_NOFOLLOW, secret);
}

void forget_secret(const SecretSource& source) {
  if (source.temporary) unlink(source.path.c_str());
}

std::string random_bytes(size_t count) {
  std::string bytes(count, '\0');
  for (size_t done = 0; done < count;) {
    const ssize_t length = getrandom(bytes.data() + done, count - done, 0);
    if (length < 0 && errno != EINTR)
      die("random numbers", "the system has none: " + system_error());
    if (length > 0) done += static_cast<size_t>(length);
  }
  return bytes;
}

std::string hexadecimal(const std::string& bytes) {
  std::string text;
  for (unsigned char byte : bytes) {
    text += "0123456789abcdef"[byte >> 4];
    text += "0123456789abcdef"[byte & 15];
  }
  return text;
}

}  // namespace sgtc::runtime
