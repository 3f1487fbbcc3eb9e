#include "cuda/nccl.h"

#include <dlfcn.h>
#include <unistd.h>

#include <cstdlib>

#include "failure.h"

namespace sgtc::runtime::cuda {
namespace {

constexpr const char* kLibrary = "libnccl.so.2";
constexpr int kOldest = 21900;  // registers buffers
constexpr const char* kInstall =
    "install NCCL 2.19 or newer for the CUDA version of the driver, such as the Python package "
    "nvidia-nccl-cu12, and name the library's folder in LD_LIBRARY_PATH";

constexpr useconds_t kPoll = 50;                // microseconds
constexpr useconds_t kTimeToNoticeLoss = 1500;  // milliseconds

std::string library_name() {
  const char* other = std::getenv("SGTC_NCCL_LIBRARY");
  return other && *other ? other : kLibrary;
}

// Algorithm and protocol decide the order of a sum. NVLink's multicast adds in an order of its own.
// Graphs follow each other in one stream, so NCCL need not order them. Its service for diagnosis
// would listen on a port.
void set_environment(bool on_one_host) {
  constexpr const char* kVariables[][2] = {{"NCCL_ALGO", "RING"},
                                           {"NCCL_PROTO", "SIMPLE"},
                                           {"NCCL_NVLS_ENABLE", "0"},
                                           {"NCCL_GRAPH_MIXING_SUPPORT", "0"},
                                           {"NCCL_RAS_ENABLE", "0"}};
  for (const auto& [name, value] : kVariables) setenv(name, value, 0);
  if (on_one_host) setenv("NCCL_SOCKET_IFNAME", "lo", 0);
}

// "2.19.3" of 21903.
std::string version_text(int version) {
  return format("%d.%d.%d", version / 10000, version / 100 % 100, version % 100);
}

template <typename Pointer>
bool find(void* library, Pointer& function, const char* name) {
  function = reinterpret_cast<Pointer>(dlsym(library, name));
  return function != nullptr;
}

}  // namespace

Nccl::Nccl(const Peers& peers) : peers_(peers) {
  set_environment(peers.on_one_host());
  load();
}

void Nccl::load() {
  const std::string name = library_name();
  void* library = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    const char* folders = std::getenv("LD_LIBRARY_PATH");
    const std::string looked = folders && *folders ? std::string(folders) : "not set";
    die("NCCL",
        "cannot be loaded: " + std::string(dlerror()) +
            "; GPUs communicate by it; LD_LIBRARY_PATH is " + looked,
        kInstall);
  }
  path_ = name;
  if (find(library, functions.ncclGetVersion, "ncclGetVersion")) {
    Dl_info place = {};
    if (dladdr(reinterpret_cast<void*>(functions.ncclGetVersion), &place) && place.dli_fname) {
      path_ = place.dli_fname;
    }
    if (version_number() < kOldest) {
      die("NCCL",
          "the library " + path_ + " is of version " + version() + ", expected " +
              version_text(kOldest) + " or newer",
          kInstall);
    }
  }
#define SGTC_NCCL_FIND(result, function, parameters)                                 \
  if (!find(library, functions.function, #function)) {                               \
    die("NCCL", "the library " + path_ + " has no function " + #function, kInstall); \
  }
  SGTC_NCCL_FUNCTIONS(SGTC_NCCL_FIND)
#undef SGTC_NCCL_FIND
}

int Nccl::version_number() const {
  int version = 0;
  functions.ncclGetVersion(&version);
  return version;
}

std::string Nccl::version() const { return version_text(version_number()); }

void Nccl::check(int result, const char* call, NcclCommunicator communicator) const {
  if (result != kNcclSuccess && result != kNcclInProgress) fail(result, call, communicator);
}

void Nccl::complete(NcclCommunicator communicator, const char* call) const {
  for (;;) {
    int result = kNcclSuccess;
    check(functions.ncclCommGetAsyncError(communicator, &result), "ncclCommGetAsyncError",
          communicator);
    if (result == kNcclSuccess) return;
    check(result, call, communicator);
    if (peers_.watch.lost()) peers_.watch.exit_lost();
    usleep(kPoll);
  }
}

void Nccl::look_at(NcclCommunicator communicator) const {
  int result = kNcclSuccess;
  check(functions.ncclCommGetAsyncError(communicator, &result), "ncclCommGetAsyncError",
        communicator);
  check(result, "a communication", communicator);
}

void Nccl::await_loss() const {
  for (useconds_t waited = 0; waited < kTimeToNoticeLoss; ++waited) {
    if (peers_.watch.lost()) peers_.watch.exit_lost();
    usleep(1000);
  }
}

void Nccl::fail(int result, const std::string& call, NcclCommunicator communicator) const {
  await_loss();
  std::string text = functions.ncclGetErrorString(result);
  const char* more = functions.ncclGetLastError(communicator);
  if (more && *more) text += std::string(": ") + more;
  die("NCCL",
      format("rank %ld: ", static_cast<long>(peers_.rank)) + call + " failed: " + text +
          format(" (%d)", result),
      "run again with NCCL_DEBUG=WARN to learn more");
}

}  // namespace sgtc::runtime::cuda
