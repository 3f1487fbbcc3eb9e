#include "launch/host.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "failure.h"

namespace sgtc::runtime {
namespace {

std::string boot_id() {
  char text[64] = "";
  const int file = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
  if (file < 0) return {};
  const ssize_t length = read(file, text, sizeof text);
  close(file);
  std::string id(text, static_cast<size_t>(length > 0 ? length : 0));
  return id.substr(0, id.find('\n'));
}

}  // namespace

std::string host_name() {
  char name[256] = "localhost";
  gethostname(name, sizeof name - 1);
  return name;
}

std::string host_identity() {
  struct stat network = {};
  struct stat memory = {};
  stat("/proc/self/ns/net", &network);
  stat("/dev/shm", &memory);
  return host_name() + " " + boot_id() +
         format(" %lu %lu", static_cast<unsigned long>(network.st_ino),
                static_cast<unsigned long>(memory.st_dev));
}

}  // namespace sgtc::runtime
