#include "communication/descriptors.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstddef>
#include <cstdio>
#include <cstring>
#include <string>

namespace sgtc::runtime {
namespace {

// How others find a process and know it again.
struct Process {
  long id = 0;
  long user = 0;
  std::string socket;  // the kernel's name for its listener
};

std::string to_text(const Process& process) {
  return std::to_string(process.id) + " " + std::to_string(process.user) + " " + process.socket;
}

Process parse(const std::string& text) {
  Process process;
  char name[32] = {};
  if (std::sscanf(text.c_str(), "%ld %ld %31s", &process.id, &process.user, name) != 3) return {};
  process.socket = name;
  return process;
}

// One that never waits, for nobody may come and nobody may take what is sent.
Socket new_socket() {
  return Socket(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
}

// The kernel chooses a name, which begins with a zero byte.
Socket listen_anywhere(std::string& name) {
  Socket listener = new_socket();
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  auto* const generic = reinterpret_cast<sockaddr*>(&address);
  if (bind(listener.descriptor(), generic, sizeof(sa_family_t)) != 0) return {};
  socklen_t length = sizeof address;
  if (getsockname(listener.descriptor(), generic, &length) != 0) return {};
  if (listen(listener.descriptor(), SOMAXCONN) != 0) return {};
  const size_t before = offsetof(sockaddr_un, sun_path) + 1;
  name.assign(address.sun_path + 1, length - before);
  return listener;
}

Socket connect_to(const std::string& name) {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  if (name.empty() || name.size() + 1 > sizeof address.sun_path) return {};
  std::memcpy(address.sun_path + 1, name.data(), name.size());
  Socket socket = new_socket();
  const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  const auto* generic = reinterpret_cast<const sockaddr*>(&address);
  if (connect(socket.descriptor(), generic, length) != 0) return {};
  return socket;
}

// Whether that process is at the other end.
bool belongs_to(const Socket& socket, const Process& process) {
  ucred found = {};
  socklen_t length = sizeof found;
  return getsockopt(socket.descriptor(), SOL_SOCKET, SO_PEERCRED, &found, &length) == 0 &&
         found.pid == process.id && static_cast<long>(found.uid) == process.user;
}

// A message of the sender's rank, with descriptors beside it.
class Message {
 public:
  Message() {
    header_.msg_iov = &part_;
    header_.msg_iovlen = 1;
    header_.msg_control = control_;
    header_.msg_controllen = sizeof control_;
  }
  Message(const Message&) = delete;
  Message& operator=(const Message&) = delete;

  bool send(const Socket& socket, int64_t rank, const std::vector<int>& descriptors) {
    rank_ = rank;
    const size_t bytes = descriptors.size() * sizeof(int);
    header_.msg_controllen = descriptors.empty() ? 0 : CMSG_SPACE(bytes);
    if (!descriptors.empty()) {
      cmsghdr* beside = CMSG_FIRSTHDR(&header_);
      beside->cmsg_level = SOL_SOCKET;
      beside->cmsg_type = SCM_RIGHTS;
      beside->cmsg_len = CMSG_LEN(bytes);
      std::memcpy(CMSG_DATA(beside), descriptors.data(), bytes);
    }
    return sendmsg(socket.descriptor(), &header_, MSG_NOSIGNAL) == sizeof rank_;
  }

  // The sender's rank; -1: there is no message.
  int64_t receive(const Socket& socket, std::vector<Socket>& descriptors) {
    if (recvmsg(socket.descriptor(), &header_, MSG_CMSG_CLOEXEC | MSG_DONTWAIT) != sizeof rank_) {
      return -1;
    }
    for (cmsghdr* beside = CMSG_FIRSTHDR(&header_); beside;
         beside = CMSG_NXTHDR(&header_, beside)) {
      if (beside->cmsg_level != SOL_SOCKET || beside->cmsg_type != SCM_RIGHTS) continue;
      const size_t count = (beside->cmsg_len - CMSG_LEN(0)) / sizeof(int);
      for (size_t i = 0; i < count; ++i) {
        int descriptor = -1;
        std::memcpy(&descriptor, CMSG_DATA(beside) + i * sizeof(int), sizeof(int));
        descriptors.emplace_back(descriptor);
      }
    }
    return rank_;
  }

 private:
  int64_t rank_ = -1;
  iovec part_ = {&rank_, sizeof rank_};
  alignas(cmsghdr) char control_[CMSG_SPACE(kMostDescriptors * sizeof(int))] = {};
  msghdr header_ = {};
};

}  // namespace

Descriptors exchange_descriptors(const Peers& peers, const std::vector<int64_t>& others,
                                 const std::vector<int>& own) {
  Process self = {getpid(), static_cast<long>(geteuid()), ""};
  const Socket listener = listen_anywhere(self.socket);
  std::vector<Process> processes;
  for (const std::string& text : peers.all_gather(to_text(self))) processes.push_back(parse(text));

  for (const int64_t other : others) {
    if (peers.nodes[static_cast<size_t>(other)] != peers.nodes[static_cast<size_t>(peers.rank)]) {
      continue;
    }
    const Process& process = processes[static_cast<size_t>(other)];
    const Socket socket = connect_to(process.socket);
    if (socket.is_open() && belongs_to(socket, process)) Message().send(socket, peers.rank, own);
  }
  peers.all_gather("");  // from here on everything that was sent is there

  Descriptors received;
  for (;;) {
    const Socket socket(
        listener.is_open() ? accept4(listener.descriptor(), nullptr, nullptr, SOCK_CLOEXEC) : -1);
    if (!socket.is_open()) return received;
    std::vector<Socket> descriptors;
    const int64_t rank = Message().receive(socket, descriptors);
    if (rank < 0 || rank >= static_cast<int64_t>(processes.size())) continue;
    if (!belongs_to(socket, processes[static_cast<size_t>(rank)])) continue;
    if (descriptors.size() == own.size()) received[rank] = std::move(descriptors);
  }
}

}  // namespace sgtc::runtime
